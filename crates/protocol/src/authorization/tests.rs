//! Whole requests, signed as the clients sign them.

use percent_encoding::{AsciiSet, NON_ALPHANUMERIC, utf8_percent_encode};
use proptest::prelude::*;

use super::*;
use crate::resource_path::ResourcePath;

const DATE: &str = "Sun, 15 Nov 2026 19:23:36 GMT";

fn key() -> AccountKey {
    AccountKey::from_base64(EMULATOR_KEY).expect("the emulator's key")
}

fn signature_of(header: &str) -> Signature {
    match AuthorizationToken::parse(header) {
        Ok(AuthorizationToken::Master { signature }) => signature,
        other => panic!("{header} is {other:?}"),
    }
}

#[test]
fn the_string_to_sign_has_five_lines() {
    assert_eq!(
        string_to_sign("POST", "docs", "dbs/Db/colls/C", DATE),
        "post\ndocs\ndbs/Db/colls/C\nsun, 15 nov 2026 19:23:36 gmt\n\n"
    );
    assert_eq!(string_to_sign("GET", "", "", DATE), "get\n\n\nsun, 15 nov 2026 19:23:36 gmt\n\n");
    let path = ResourcePath::parse("/dbs").expect("a path");
    let target = signed_targets(&path).next().expect("a target");
    let payload = SignaturePayload { verb: "GET", target, x_date: "", date: DATE };
    assert_eq!(payload.to_string(), "get\ndbs\n\n\nsun, 15 nov 2026 19:23:36 gmt\n");
}

#[test]
fn the_displayed_payload_is_the_signed_payload() {
    let path = ResourcePath::parse("/dbs/Größe/colls/C/docs").expect("a path");
    for target in signed_targets(&path) {
        for (x_date, date) in [(DATE, ""), ("", DATE), (DATE, DATE), ("", "")] {
            let payload = SignaturePayload { verb: "Post", target: target.clone(), x_date, date };
            assert_eq!(payload.sign(&key()), key().sign_bytes(payload.to_string().as_bytes()));
        }
    }
}

/// The first way of signing each path, by the reference's table.
#[test]
fn each_path_is_signed_by_type_and_link() {
    for (path, kind, link) in [
        ("/", "", ""),
        ("/dbs", "dbs", ""),
        ("/dbs/d", "dbs", "dbs/d"),
        ("/dbs/d/", "dbs", "dbs/d"),
        ("/dbs/d/colls", "colls", "dbs/d"),
        ("/dbs/d/colls/c", "colls", "dbs/d/colls/c"),
        ("/dbs/d/colls/c/docs/", "docs", "dbs/d/colls/c"),
        ("/dbs/d/colls/c/docs/Id%20x", "docs", "dbs/d/colls/c/docs/Id x"),
        ("/dbs/d/colls/c/pkranges", "pkranges", "dbs/d/colls/c"),
        ("/offers", "offers", ""),
        ("/offers/aBcD", "offers", "abcd"),
        ("/dbs/d/colls/c/sprocs", "sprocs", "dbs/d/colls/c"),
        ("/dbs/d/colls/c/sprocs/s", "sprocs", "dbs/d/colls/c/sprocs/s"),
        ("/dbs/d/users/u/permissions", "permissions", "dbs/d/users/u"),
        ("/dbs/d/colls/c/operations/partitionkeydelete", "colls", "dbs/d/colls/c"),
        ("/dbs/a%20b/colls/c/operations/partitionkeydelete/", "colls", "dbs/a b/colls/c"),
    ] {
        let path = ResourcePath::parse(path).expect(path);
        let target = signed_targets(&path).next().expect("a target");
        assert_eq!((target.resource_type, &*target.link), (kind, link), "{}", path.raw());
        assert_eq!(payload::likeliest_target(&path), target, "{}", path.raw());
    }
}

#[test]
fn ids_may_be_signed_instead_of_names() {
    for (path, expected) in [
        ("/dbs/bQAAEA==", vec!["dbs/bQAAEA==", "bqaaea=="]),
        ("/dbs/bQAAEA==/colls/bQAAEIAAAAE=/docs", vec!["dbs/bQAAEA==/colls/bQAAEIAAAAE=", "bqaaeiaaaae="]),
        ("/dbs/bQAAEA%3D%3D/colls", vec!["dbs/bQAAEA==", "bqaaea==", "dbs/bQAAEA%3D%3D"]),
        ("/dbs/plain/colls/bQAAEIAAAAE=", vec!["dbs/plain/colls/bQAAEIAAAAE="]),
        ("/offers/aBcD", vec!["abcd", "offers/aBcD"]),
    ] {
        let path = ResourcePath::parse(path).expect(path);
        let links: Vec<_> = signed_targets(&path).map(|target| target.link.into_owned()).collect();
        assert_eq!(links, expected, "{}", path.raw());
    }
    let path = ResourcePath::parse("/dbs/d/colls/c/operations/partitionkeydelete").expect("a path");
    let kinds: Vec<_> = signed_targets(&path).map(|target| target.resource_type).collect();
    assert_eq!(kinds, ["colls", "partitionkey", "operations"]);
}

/// `-_.!~*'()` stay as they are in Python and JavaScript; form encoding in Rust keeps `*-._`;
/// duroxide escapes everything that is not a letter or digit.
#[test]
fn every_clients_encoding_of_the_header_is_read() {
    const URI_COMPONENT: &AsciiSet = &NON_ALPHANUMERIC
        .remove(b'-')
        .remove(b'_')
        .remove(b'.')
        .remove(b'!')
        .remove(b'~')
        .remove(b'*')
        .remove(b'\'')
        .remove(b'(')
        .remove(b')');
    const FORM: &AsciiSet = &NON_ALPHANUMERIC.remove(b'*').remove(b'-').remove(b'.').remove(b'_');
    // The signature of some payloads has a plus, of some a slash: try enough of them.
    for number in 0..50 {
        let signature = key().sign_bytes(format!("payload {number}").as_bytes());
        let token = format!("type=master&ver=1.0&sig={signature}");
        let encoded = |set| utf8_percent_encode(&token, set).to_string();
        for header in [
            encoded(URI_COMPONENT),
            encoded(FORM),
            encoded(NON_ALPHANUMERIC),
            token.clone(),
            token.replace('+', " "),
            token.replace("type=master", "type=Master"),
        ] {
            assert_eq!(signature_of(&header), signature, "{header}");
        }
        // Only the case of the escapes changes, not that of the signature.
        let lower_escapes =
            encoded(NON_ALPHANUMERIC).replace("%2B", "%2b").replace("%2F", "%2f").replace("%3D", "%3d");
        assert_eq!(signature_of(&lower_escapes), signature);
    }
}

/// What begins as usual and does not continue as usual is judged by the whole grammar.
#[test]
fn a_header_with_a_usual_start_is_still_validated() {
    let signature = key().sign_bytes(b"a payload").to_base64();
    let escaped = signature.replace('=', "%3D").replace('+', "%2B").replace('/', "%2F");
    for start in [
        "type=master&ver=1.0&sig=",
        "type%3Dmaster%26ver%3D1.0%26sig%3D",
        "type%3dmaster%26ver%3d1.0%26sig%3d",
    ] {
        assert!(AuthorizationToken::parse(&format!("{start}{signature}")).is_ok());
        assert!(AuthorizationToken::parse(&format!(" {start}{escaped} ")).is_ok());
        for bad in [
            "",
            "%",
            "%3",
            "%zz",
            &signature[..43],
            &format!("{signature}="),
            &format!("{signature}%3D"),
            &format!("{}%", &signature[..43]),
            &format!("{}%4", &signature[..43]),
            &format!("{}%g0", &signature[..43]),
            &"%41".repeat(44),
            &"é".repeat(22),
        ] {
            assert_eq!(
                AuthorizationToken::parse(&format!("{start}{bad}")),
                Err(AuthorizationTokenError::BadSignature),
                "{start}{bad}"
            );
        }
        assert_eq!(AuthorizationToken::parse(&format!("{start}%ff")), Err(AuthorizationTokenError::NotText));
        assert_eq!(
            AuthorizationToken::parse(&start.replace("type", "TYPE")),
            Err(AuthorizationTokenError::MissingPart)
        );
    }
}

#[test]
fn a_long_payload_is_signed_like_a_short_one() {
    for length in [1, 300, 400, 512, 600, 5000] {
        let link = "Ab".repeat(length / 2) + "c";
        let target = SignedTarget { resource_type: "docs", link: link.as_str().into() };
        let payload = SignaturePayload { verb: "GET", target, x_date: DATE, date: "" };
        assert_eq!(payload.sign(&key()), key().sign_bytes(payload.to_string().as_bytes()), "{length}");
    }
}

#[test]
fn aad_and_resource_tokens_are_parsed() {
    let jwt = "eyJhbGciOiJub25lIn0.eyJvaWQiOiJ4In0.c2ln";
    let aad = AuthorizationToken::Aad { jwt: jwt.to_owned() };
    assert_eq!(AuthorizationToken::parse(&format!("type=aad&ver=1.0&sig={jwt}")), Ok(aad.clone()));
    assert_eq!(AuthorizationToken::parse(&format!("type%3Daad%26ver%3D1.0%26sig%3D{jwt}")), Ok(aad));
    let token = "type=resource&ver=1&sig=ab+c/d==;e&f=g;";
    let resource = AuthorizationToken::Resource { token: token.to_owned() };
    assert_eq!(AuthorizationToken::parse(token), Ok(resource.clone()));
    let encoded = utf8_percent_encode(token, NON_ALPHANUMERIC).to_string();
    assert_eq!(AuthorizationToken::parse(&encoded), Ok(resource.clone()));
    assert_eq!(AuthorizationToken::parse(&token.replace('+', " ")), Ok(resource));
}

#[test]
fn a_malformed_header_is_rejected_with_its_error() {
    use AuthorizationTokenError::{BadJwt, BadSignature, MissingPart, NotText, UnknownType, UnknownVersion};
    for (header, expected) in [
        ("", MissingPart),
        ("Bearer abc", MissingPart),
        ("type=master&ver=1.0", MissingPart),
        ("type=master&sig=x", MissingPart),
        ("type=master&ver=1.0&signature=x", MissingPart),
        ("%FF%FE", NotText),
        ("type=magic&ver=1.0&sig=x", UnknownType),
        ("type=sas&ver=1.0&sig=x", MissingPart),
        ("type=master&ver=2.0&sig=x", UnknownVersion),
        ("type=master&ver=1.0&sig=", BadSignature),
        ("type=master&ver=1.0&sig=AAAA", BadSignature),
        ("type=master&ver=1.0&sig=not base64 at all, but of the right length..", BadSignature),
        ("type=aad&ver=1.0&sig=only.two", BadJwt),
        ("type=resource&ver=1&sig=", MissingPart),
    ] {
        assert_eq!(AuthorizationToken::parse(header), Err(expected), "{header}");
    }
}

#[test]
fn a_request_is_verified_however_it_was_signed() {
    let key = key();
    for (path, kind, link) in [
        ("/dbs/db1/colls/c1/docs/", "docs", "dbs/db1/colls/c1"),
        ("/dbs/db1/colls/c1/docs/a%20b", "docs", "dbs/db1/colls/c1/docs/a b"),
        ("/dbs/db1/colls/c1/docs/a%20b", "docs", "dbs/db1/colls/c1/docs/a%20b"),
        ("/dbs/bQAAEA==/colls/bQAAEIAAAAE=/", "colls", "bqaaeiaaaae="),
        ("/dbs/bQAAEA==/colls/bQAAEIAAAAE=/", "colls", "dbs/bQAAEA==/colls/bQAAEIAAAAE="),
        ("/dbs/db1/colls/c1/operations/partitionkeydelete", "partitionkey", "dbs/db1/colls/c1"),
    ] {
        let signature = signature_of(&sign(&key, "POST", kind, link, DATE));
        let path = ResourcePath::parse(path).expect(path);
        assert_eq!(verify(&key, &signature, "POST", &path, (DATE, "")), Ok(()), "{link}");
        assert_eq!(verify(&key, &signature, "post", &path, (DATE, "ignored")), Ok(()), "{link}");
        assert!(verify(&key, &signature, "PUT", &path, (DATE, "")).is_err());
        assert!(verify(&key, &signature, "POST", &path, ("Mon, 16 Nov 2026 19:23:36 GMT", "")).is_err());
        let other = AccountKey::from_base64("b3RoZXI=").expect("a key");
        assert!(verify(&other, &signature, "POST", &path, (DATE, "")).is_err());
    }
}

#[test]
fn a_wrong_signature_quotes_what_the_server_signed() {
    let key = key();
    let signature = key.sign_bytes(b"something else");
    let path = ResourcePath::parse("/dbs/db/colls/c/docs").expect("a path");
    let payload = verify(&key, &signature, "POST", &path, (DATE, "")).expect_err("a wrong signature");
    assert_eq!(payload.to_string(), "post\ndocs\ndbs/db/colls/c\nsun, 15 nov 2026 19:23:36 gmt\n\n");
}

/// Made with another implementation: Python's hmac and hashlib.
#[test]
fn signatures_agree_with_another_implementation() {
    let header = sign(&key(), "GET", "dbs", "dbs/ToDoList", "Thu, 27 Apr 2017 00:51:12 GMT");
    assert_eq!(signature_of(&header).to_base64(), "mM0rMK/7o1MZhQwDitGRoGisPRPx09os/86Jk0YwquY=");
}

proptest! {
    #[test]
    fn any_header_parses_or_fails_without_panic(header in any::<String>(), like in "(type|ver|sig|master|aad|resource|[=&%+ .;0-9a-f]){0,20}") {
        let _ = AuthorizationToken::parse(&header);
        let _ = AuthorizationToken::parse(&like);
    }

    #[test]
    fn a_signed_request_verifies(verb in "GET|POST|PUT|PATCH|DELETE", id in "\\PC{1,30}", date in "\\PC{1,80}") {
        let link = format!("dbs/d/colls/c/docs/{id}");
        let escaped = utf8_percent_encode(&id, NON_ALPHANUMERIC).to_string();
        let path = format!("/dbs/d/colls/c/docs/{escaped}");
        let path = ResourcePath::parse(&path).unwrap();
        let signature = signature_of(&sign(&key(), &verb, "docs", &link, &date));
        prop_assert_eq!(verify(&key(), &signature, &verb, &path, (&date, "")), Ok(()));
    }
}
