//! Keys beside the primary one, tokens of Microsoft Entra ID, and shared access signatures.

use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::{STANDARD, URL_SAFE_NO_PAD};
use http::Method;
use percent_encoding::{NON_ALPHANUMERIC, utf8_percent_encode};
use perihelion_emulator::access::{AccessControl, AccountKeys, EntraTokens, JsonWebKeys};
use perihelion_emulator::{Bind, Emulator, EmulatorConfig};
use protocol::authorization::{AccountKey, EMULATOR_KEY, sign, signed_targets};
use protocol::resource_path::ResourcePath;
use ring::rand::SystemRandom;
use ring::signature::{ECDSA_P256_SHA256_FIXED_SIGNING, EcdsaKeyPair, KeyPair as _};
use serde_json::{Value, json};

use crate::client::{NOW_SECONDS, TestAccount, TestResponse};
use crate::live::LiveAccount;

const DATE: &str = "Sun, 15 Nov 2026 19:23:36 GMT";
const DOCS: &str = "/dbs/d/colls/c/docs";
const KEY: (&str, &str) = ("x-ms-documentdb-partitionkey", "[\"a\"]");
const ITEM: &str = r#"{"id":"1","pk":"a"}"#;

const SECONDARY: &str = "c2Vjb25kYXJ5";
const READ_ONLY: &str = "cmVhZC1vbmx5";

fn key(base64: &str) -> AccountKey {
    AccountKey::from_base64(base64).unwrap()
}

fn keys() -> AccessControl {
    let keys = AccountKeys { secondary: Some(key(SECONDARY)), read_only: vec![key(READ_ONLY)] };
    AccessControl { keys, ..AccessControl::default() }
}

/// Sends a request that is signed with any key.
async fn signed(
    account: &TestAccount,
    by: &str,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> TestResponse {
    let parsed = ResourcePath::parse(path).unwrap();
    let target = signed_targets(&parsed).next().unwrap();
    let authorization = sign(&key(by), method.as_str(), target.resource_type, &target.link, DATE);
    with(account, &authorization, method, path, headers, body).await
}

/// Sends a request with an authorization header.
async fn with(
    account: &TestAccount,
    authorization: &str,
    method: Method,
    path: &str,
    headers: &[(&str, &str)],
    body: &str,
) -> TestResponse {
    let all = [&[("authorization", authorization), ("x-ms-date", DATE)], headers].concat();
    account.send_unsigned(method, path, &all, body).await
}

#[tokio::test]
async fn the_secondary_key_has_the_rights_of_the_primary_one() {
    let account = TestAccount::with_access(keys()).await;
    for by in [EMULATOR_KEY, SECONDARY] {
        signed(&account, by, Method::POST, "/dbs", &[], &json!({ "id": by.len().to_string() }).to_string())
            .await
            .expect(201);
    }
    signed(&account, "b3RoZXI=", Method::GET, "/dbs", &[], "").await.expect_error(401, 0, "payload to sign");
}

#[tokio::test]
async fn a_read_only_key_reads_everything_but_permissions_and_writes_nothing() {
    let account = TestAccount::with_access(keys()).await;
    account.send(Method::POST, DOCS, &[KEY], ITEM).await.expect(201);
    account.post("/dbs/d/users", r#"{"id":"u"}"#).await.expect(201);
    let item = format!("{DOCS}/1");
    let query = [KEY, ("x-ms-documentdb-isquery", "true")];
    for path in
        ["/", "/dbs", "/dbs/d/colls/c", DOCS, &item, "/offers", "/dbs/d/users", "/dbs/d/colls/c/pkranges"]
    {
        signed(&account, READ_ONLY, Method::GET, path, &[KEY], "").await.expect(200);
    }
    let text = r#"{"query":"SELECT * FROM c"}"#;
    signed(&account, READ_ONLY, Method::POST, DOCS, &query, text).await.expect(200);
    let batch = [KEY, ("x-ms-cosmos-is-batch-request", "true")];
    for (method, path, headers, body) in [
        (Method::POST, "/dbs", &[KEY][..], r#"{"id":"x"}"#),
        (Method::DELETE, "/dbs/d", &[KEY], ""),
        (Method::POST, DOCS, &[KEY], r#"{"id":"2","pk":"a"}"#),
        (Method::PUT, &item, &[KEY], ITEM),
        (Method::PATCH, &item, &[KEY], "{}"),
        (Method::DELETE, &item, &[KEY], ""),
        (Method::POST, DOCS, &batch, "[]"),
        (Method::POST, "/dbs/d/colls/c/operations/partitionkeydelete", &[KEY], ""),
        (Method::GET, "/dbs/d/users/u/permissions", &[], ""),
    ] {
        let response = signed(&account, READ_ONLY, method.clone(), path, headers, body).await;
        assert_eq!(response.status, 401, "{method} {path}");
        response.expect_error(401, 0, "read-only key");
    }
    account.send(Method::GET, &item, &[KEY], "").await.expect(200);
}

fn entra(entra: EntraTokens) -> AccessControl {
    AccessControl { entra, ..AccessControl::default() }
}

fn bearer(jwt: &str) -> String {
    format!("type=aad&ver=1.0&sig={jwt}")
}

/// A token that nobody signed: {"alg":"none"}.{"sub":"x"}.signature
const UNSIGNED: &str = "eyJhbGciOiJub25lIn0.eyJzdWIiOiJ4In0.c2ln";

#[tokio::test]
async fn an_entra_token_is_for_items_and_not_for_what_contains_them() {
    let account = TestAccount::with_access(AccessControl::default()).await;
    account.post("/dbs/d/users", r#"{"id":"u"}"#).await.expect(201);
    let token = bearer(UNSIGNED);
    let item = format!("{DOCS}/1");
    let send = async |method: Method, path: &str, body: &str| {
        with(&account, &token, method, path, &[KEY], body).await
    };
    send(Method::POST, DOCS, ITEM).await.expect(201);
    for path in
        ["/", "/dbs", "/dbs/d", "/dbs/d/colls", "/dbs/d/colls/c", "/dbs/d/colls/c/pkranges", DOCS, &item]
    {
        send(Method::GET, path, "").await.expect(200);
    }
    send(Method::DELETE, &item, "").await.expect(204);
    let container = r#"{"id":"n","partitionKey":{"paths":["/pk"]}}"#;
    for (method, path, body) in [
        (Method::POST, "/dbs", r#"{"id":"n"}"#),
        (Method::DELETE, "/dbs/d", ""),
        (Method::POST, "/dbs/d/colls", container),
        (Method::PUT, "/dbs/d/colls/c", container),
        (Method::DELETE, "/dbs/d/colls/c", ""),
        (Method::GET, "/offers", ""),
        (Method::GET, "/dbs/d/users", ""),
        (Method::GET, "/dbs/d/users/u/permissions", ""),
        (Method::POST, "/dbs/d/users", r#"{"id":"v"}"#),
        (Method::GET, "/dbs/d/colls/c/sprocs", ""),
    ] {
        let response = send(method.clone(), path, body).await;
        let text =
            format!("The given request [{method} {path}] cannot be authorized by AAD token in data plane");
        response.expect_error(403, 5300, &text);
    }
}

#[tokio::test]
async fn entra_tokens_can_be_turned_off() {
    let account = TestAccount::with_access(entra(EntraTokens::Off)).await;
    let response = with(&account, &bearer(UNSIGNED), Method::GET, "/dbs", &[], "").await;
    response.expect_error(401, 5002, "not accepted");
}

/// The modulus of the RSA key that signed the tokens below.
const MODULUS: &str = concat!(
    "mcX_K74m0E4nCC1YWJ88aFavmTAwNI3yIpMiOuLmZriWuDML1pJLjXqghGX5eLdR398JgHlrs96UyREJ6gP4Wb1i1W",
    "PUM6rTn6b-oc0sWt0PmQW-wffgJTYD4YIpTKlpUxvOp173zzakhJhBtt5l_iDvavS7lmzdiE5XLH5xY9emgH_BHwoE",
    "IGzNGLVU3B_rUMM3gUPNVsno36bXGpHONcuy_gcwQPDgQgUFrEu7FBpGV7AYP_9dW2s6lBLYq0_WNJDn7hSeXRsi_q",
    "dL7s7NL1A2j7AO837PpayvuWWqtbEaWTTKmamXFh2KnyM5EoXHT1LJZrz-Geow6RH_wb-dqQ",
);

/// A token of that key, `{"alg":"RS256","kid":"one"}`, that expires in the year 2100.
const VALID: &str = concat!(
    "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6Im9uZSJ9.eyJzdWIiOiJyZWFkZXIiLCJleHAiOjQxMDI0N",
    "DQ4MDB9.cF8pHjAqWQFzzU4xY_qqJww73O_VstNGQDLPwsnfQgjfFA23Si0aQRPiL9J4xXhdZVBJ5JOMEkoSL2LfUg",
    "L5NkpCNHIcrdUybnQfS0FMITsVidoikGej-1WYKnL4AG6Du5wDsCEqVjvFbd64htde0OsZqEiztwQFVCJyjfmblGnj",
    "TTWF-SvzvVR0ozx2BkaMeUXFVfFp6LeHNHz0nrTKIU7wy-YXuACBtM60uM8QRUl6sSS-BXPHCZ0Bo4j-gy0FjJ75xH",
    "lOYzlKL3FgxT-1wbIcAFQxrmGx1O4QUlY0Dt3ycNbWpXlB8nii5Mmu0G--XpkV5lfxZ-6SjbHwk3fZCw",
);

/// A token of that key that expired in 2001.
const EXPIRED: &str = concat!(
    "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6Im9uZSJ9.eyJzdWIiOiJyZWFkZXIiLCJleHAiOjEwMDAwM",
    "DAwMDB9.ZTYyBH9o0QdsAe-ELXeBL_XK4ph_nlWiKMJ0HOSAwitviOyuDtnobt3AmZQtlfkVaFC8RLPgPVbsfgHEDf",
    "rVnn4nbHhHbTSURPvlimlNDhapUpzS8dmPELJzUk-MdEbY2a3s3miw0CO5dNF6Ev-f92F_6OMoZVVFbmn_XJPeJaPo",
    "DSIsLYMFAr7_cXtddkhOYJ_ltI7dVXg2S5Ns2znWNstaLj-pi38Yd1g8JaxCLaw5rAKIW7eHQvvL32mRYa8w4vChLj",
    "6xEwzRoGZs9zi9q2fAy6XYKdRtVSYrY96qhJ9j1WxfNUW0NI-RE34iOLZ6TaC4gmfH_RbjdLjtpgJAPA",
);

/// A token of that key without a time of expiry.
const FOREVER: &str = concat!(
    "eyJhbGciOiJSUzI1NiIsInR5cCI6IkpXVCIsImtpZCI6Im9uZSJ9.eyJzdWIiOiJyZWFkZXIifQ.RQclAIO-K259tg",
    "ztQ5MhNxpEITgJoNJ_su911Yq_pArWnPM2H9LXGGvAkXCjEO2BfDGsy0txy7VYceWv7b0e-LXXamF98a9ISf4X8_1s",
    "lrxOuksHsbEl-QSePIorrqDB8YJhzBsdHTRZwgNjenucqVkMW1luRtsgyrR0zujSd8NnhGuEOzyQ2k71-ppZrFPjBQ",
    "GkFNHML1vh5mFwrnIaWHjTxB5B5b3RsY3xtgPnVS_gdL2pp6mIcxybneHeaGXuD07rm9Tjf2Z7bi4QA7qtcrtX1Enl",
    "rTkpPlkeEfO2x-EN5QgK9KRQLTAq0LG52UqVAHEDsPu2n6-PEMEICAMiHQ",
);

fn key_set(key: Value) -> JsonWebKeys {
    JsonWebKeys::parse(json!({ "keys": [{ "kty": "oct", "k": "AA" }, key] }).to_string().as_bytes()).unwrap()
}

fn rsa_keys() -> JsonWebKeys {
    key_set(json!({ "kty": "RSA", "use": "sig", "kid": "one", "n": MODULUS, "e": "AQAB" }))
}

#[tokio::test]
async fn with_a_key_set_only_tokens_that_one_of_its_keys_signed_are_accepted() {
    let account = TestAccount::with_access(entra(EntraTokens::Signed(rsa_keys()))).await;
    let get = async |jwt: &str| with(&account, &bearer(jwt), Method::GET, "/dbs", &[], "").await;
    get(VALID).await.expect(200);
    get(EXPIRED).await.expect_error(401, 5006, "expired");
    get(FOREVER).await.expect_error(401, 5003, "no time of expiry");
    let encode = |text: &str| URL_SAFE_NO_PAD.encode(text);
    let (header, rest) = VALID.split_once('.').unwrap();
    let (claims, signature) = rest.split_once('.').unwrap();
    let expiring = encode(r#"{"sub":"admin","exp":4102444800}"#);
    for forged in [
        // Another claim, another algorithm, no algorithm, another key, and no signature at all.
        format!("{header}.{expiring}.{signature}"),
        format!("{}.{claims}.{signature}", encode(r#"{"alg":"RS512","kid":"one"}"#)),
        format!("{}.{claims}.c2ln", encode(r#"{"alg":"none"}"#)),
        format!("{}.{claims}.{}", encode(r#"{"alg":"HS256","kid":"one"}"#), encode("x")),
        format!("{}.{claims}.{signature}", encode(r#"{"alg":"RS256","kid":"two"}"#)),
        format!("{header}.{claims}.c2ln"),
    ] {
        get(&forged).await.expect_error(401, 5004, "not signed");
    }
    let other =
        key_set(json!({ "kty": "RSA", "kid": "one", "n": MODULUS.replace("mcX", "mcY"), "e": "AQAB" }));
    let account = TestAccount::with_access(entra(EntraTokens::Signed(other))).await;
    with(&account, &bearer(VALID), Method::GET, "/dbs", &[], "").await.expect_error(401, 5004, "not signed");
}

#[tokio::test]
async fn keys_of_elliptic_curves_sign_tokens_too() {
    let random = SystemRandom::new();
    let pair = EcdsaKeyPair::generate_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, &random).unwrap();
    let pair = EcdsaKeyPair::from_pkcs8(&ECDSA_P256_SHA256_FIXED_SIGNING, pair.as_ref(), &random).unwrap();
    let (x, y) = pair.public_key().as_ref()[1..].split_at(32);
    let encode = |bytes: &[u8]| URL_SAFE_NO_PAD.encode(bytes);
    let keys =
        key_set(json!({ "kty": "EC", "crv": "P-256", "alg": "ES256", "x": encode(x), "y": encode(y) }));
    let account = TestAccount::with_access(entra(EntraTokens::Signed(keys))).await;
    let claims = json!({ "exp": NOW_SECONDS + 60 }).to_string();
    let text = format!("{}.{}", encode(br#"{"alg":"ES256"}"#), encode(claims.as_bytes()));
    let signature = pair.sign(&random, text.as_bytes()).unwrap();
    let token = bearer(&format!("{text}.{}", encode(signature.as_ref())));
    with(&account, &token, Method::GET, "/dbs", &[], "").await.expect(200);
    account.clock.advance(Duration::from_secs(60 + 5 * 60));
    let late = with(&account, &token, Method::GET, "/dbs", &[], "").await;
    late.expect_error(401, 5006, "expired");
}

#[test]
fn a_file_without_a_usable_key_is_refused() {
    for text in ["", "[]", r#"{"keys":[]}"#, r#"{"keys":[{"kty":"oct","k":"AA"}]}"#] {
        assert!(JsonWebKeys::parse(text.as_bytes()).is_err(), "{text}");
    }
    let for_encryption = json!({ "keys": [{ "kty": "RSA", "use": "enc", "n": MODULUS, "e": "AQAB" }] });
    assert!(JsonWebKeys::parse(for_encryption.to_string().as_bytes()).is_err());
}

#[tokio::test]
async fn beyond_loopback_entra_tokens_are_off_unless_they_are_chosen() {
    for (chosen, expected) in [(None, 401), (Some(EntraTokens::Accept), 200)] {
        let mut config = EmulatorConfig::default();
        config.bind = "0.0.0.0".parse::<Bind>().unwrap();
        config.entra = chosen;
        let running = Emulator::start(config).await.unwrap();
        let response =
            LiveAccount::get_unsigned(running.port(), "/", &[("authorization", &bearer(UNSIGNED))]).await;
        assert_eq!(response, expected);
    }
}

/// A shared access signature as the JavaScript SDK makes it.
fn sas(path: &str, times: (i64, i64), by: (&str, u8), rights: (u32, u32), ranges: &str) -> String {
    let ((start, end), (key_text, number), (reads, writes)) = (times, by, rights);
    let payload =
        format!("user\n\n{path}\n{ranges}\n{start:x}\n{end:x}\n{number}\n40\n0\n{reads:x}\n{writes:x}\n");
    let payload = STANDARD.encode(payload);
    let token = format!("type=sas&ver=1.0&sig={};{payload}", key(key_text).sign_bytes(payload.as_bytes()));
    utf8_percent_encode(&token, NON_ALPHANUMERIC).to_string()
}

#[tokio::test]
async fn a_shared_access_signature_allows_what_it_says_on_its_container() {
    let account = TestAccount::with_access(keys()).await;
    account.post("/dbs/d/colls", r#"{"id":"other","partitionKey":{"paths":["/pk"]}}"#).await.expect(201);
    account.send(Method::POST, DOCS, &[KEY], ITEM).await.expect(201);
    let now = (NOW_SECONDS - 60, NOW_SECONDS + 60);
    let item = format!("{DOCS}/1");
    let query = [KEY, ("x-ms-documentdb-isquery", "true")];
    let send = async |token: &str, method: Method, path: &str, headers: &[(&str, &str)], body: &str| {
        with(&account, token, method, path, headers, body).await.status
    };
    let everything = sas("/dbs/d/colls/c", now, (EMULATOR_KEY, 1), (u32::MAX, u32::MAX), "");
    let reads = sas("/dbs/d/colls/c/", now, (EMULATOR_KEY, 0), (u32::MAX, 0), "");
    let queries = sas("/dbs/d/colls/c", now, (SECONDARY, 2), (1, 0), "");
    let by_reader = sas("/dbs/d/colls/c", now, (READ_ONLY, 3), (u32::MAX, u32::MAX), "");
    let one_item = sas("/dbs/d/colls/c/docs/1/", now, (EMULATOR_KEY, 1), (0x41, 0x7_000f), "");
    let text = r#"{"query":"SELECT * FROM c"}"#;
    for (token, read, feed, queried, written) in [
        (&everything, 200, 200, 200, 200),
        (&reads, 200, 200, 200, 403),
        (&queries, 403, 403, 200, 403),
        (&by_reader, 200, 200, 200, 403),
        (&one_item, 200, 403, 403, 200),
    ] {
        assert_eq!(send(token, Method::GET, "/", &[], "").await, 200);
        assert_eq!(send(token, Method::GET, "/dbs/d/colls/c", &[], "").await, 200);
        assert_eq!(send(token, Method::GET, &item, &[KEY], "").await, read);
        assert_eq!(send(token, Method::GET, DOCS, &[KEY], "").await, feed);
        assert_eq!(send(token, Method::POST, DOCS, &query, text).await, queried);
        assert_eq!(send(token, Method::PUT, &item, &[KEY], ITEM).await, written);
        for path in ["/dbs", "/dbs/d/colls/other", "/dbs/d/colls/other/docs", "/offers"] {
            assert_eq!(send(token, Method::GET, path, &[KEY], "").await, 403, "{path}");
        }
        assert_eq!(send(token, Method::DELETE, "/dbs/d/colls/c", &[], "").await, 403);
    }
}

#[tokio::test]
async fn a_shared_access_signature_that_is_forged_or_out_of_time_allows_nothing() {
    let account = TestAccount::with_access(keys()).await;
    let now = (NOW_SECONDS - 60, NOW_SECONDS + 60);
    let all = (u32::MAX, u32::MAX);
    let get = async |token: &str| with(&account, token, Method::GET, "/dbs/d/colls/c", &[], "").await;
    let container = "/dbs/d/colls/c";
    get(&sas(container, now, (EMULATOR_KEY, 1), all, "")).await.expect(200);
    for token in [
        sas(container, now, ("b3RoZXI=", 1), all, ""),
        sas(container, now, (READ_ONLY, 1), all, ""),
        sas(container, now, (READ_ONLY, 4), all, ""),
        sas(container, now, (EMULATOR_KEY, 9), all, ""),
        // Limits that are not understood are not left out.
        sas(container, now, (EMULATOR_KEY, 1), all, "91,34,97,34,93,"),
        sas("not\nlines", now, (EMULATOR_KEY, 1), all, ""),
    ] {
        get(&token).await.expect(401);
    }
    for times in
        [(NOW_SECONDS - 60, NOW_SECONDS), (NOW_SECONDS + 3600, NOW_SECONDS + 7200), (i64::MAX, i64::MAX)]
    {
        get(&sas(container, times, (EMULATOR_KEY, 1), all, "")).await.expect_error(403, 0, "current time");
    }
    let nowhere = sas("/dbs/d", now, (EMULATOR_KEY, 1), all, "");
    get(&nowhere).await.expect(403);
    with(&account, &nowhere, Method::DELETE, "/dbs/d", &[], "").await.expect(403);
}
