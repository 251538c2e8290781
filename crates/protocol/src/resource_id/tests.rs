use proptest::prelude::*;

use super::*;

const CONTAINER: ContainerRid = ContainerRid { database: DatabaseRid(0x6D00_0010), container: 1 };

#[test]
fn ids_are_laid_out_as_the_service_lays_them_out() {
    assert_eq!(DatabaseRid(1).to_string(), "AAAAAQ==");
    assert_eq!(CONTAINER.to_string(), "bQAAEIAAAAE=");
    assert_eq!("bQAAEIAAAAE=".parse(), Ok(CONTAINER));
    let item: ItemRid = "36ZyAPW+uN8NAAAAAAAAAA==".parse().expect("an item");
    assert_eq!(item.ordinal, 13);
    assert_eq!(item.to_string(), "36ZyAPW+uN8NAAAAAAAAAA==");
    let container = ContainerRid { database: DatabaseRid(0), container: 0 };
    let range = ChildRid { container, kind: ChildKind::PartitionKeyRange, ordinal: 2 };
    assert_eq!(container.to_string(), "AAAAAIAAAAA=");
    assert_eq!(range.to_string(), "AAAAAIAAAAACAAAAAAAAUA==");
}

#[test]
fn a_slash_is_written_as_a_dash() {
    let rid = DatabaseRid(0xFFFF_FFFF);
    assert_eq!(rid.to_string(), "-----w==");
    assert_eq!("-----w==".parse(), Ok(rid));
    assert!("/////w==".parse::<DatabaseRid>().is_err());
}

#[test]
fn self_links_contain_the_ids_of_all_ancestors() {
    let item = ItemRid { container: CONTAINER, ordinal: 7 };
    for (link, expected) in [
        (OfferRid(0x69B71D).self_link(), "offers/abcd/".to_owned()),
        (CONTAINER.database.self_link(), "dbs/bQAAEA==/".to_owned()),
        (CONTAINER.self_link(), "dbs/bQAAEA==/colls/bQAAEIAAAAE=/".to_owned()),
        (item.self_link(), format!("dbs/bQAAEA==/colls/bQAAEIAAAAE=/docs/{item}/")),
    ] {
        assert_eq!(link, expected);
    }
    let user = UserRid { database: DatabaseRid(1), user: 2 };
    let permission = PermissionRid { user, permission: 3 };
    assert_eq!(user.self_link(), "dbs/AAAAAQ==/users/AAAAAQAAAAI=/");
    assert_eq!(
        permission.self_link(),
        "dbs/AAAAAQ==/users/AAAAAQAAAAI=/permissions/AAAAAQAAAAIDAAAAAAAAAA==/"
    );
    let key = ClientEncryptionKeyRid { database: DatabaseRid(1), key: 3 };
    assert_eq!(key.self_link(), "dbs/AAAAAQ==/clientencryptionkeys/AAAAAQAAAAADAAAAAgAAAA==/");
    let range = ChildRid { container: CONTAINER, kind: ChildKind::PartitionKeyRange, ordinal: 0 };
    assert_eq!(range.self_link(), format!("dbs/bQAAEA==/colls/bQAAEIAAAAE=/pkranges/{range}/"));
}

#[test]
fn names_are_not_ids() {
    for text in ["", "db1", "my-container", "AAAAAQ", "AAAAAQ===", "AAAAAR==", "AAAAAQAAAAE", "\u{e9}AAA"] {
        assert!(text.parse::<DatabaseRid>().is_err(), "{text}");
    }
    assert!("bQAAEIAAAAE=".parse::<DatabaseRid>().is_err(), "a container is not a database");
    assert!("A".repeat(1000).parse::<ResourceId>().is_err());
}

fn any_id() -> impl Strategy<Value = ResourceId> {
    let container = (any::<u32>(), 0..CONTAINER_BIT)
        .prop_map(|(database, container)| ContainerRid { database: DatabaseRid(database), container });
    let user = (any::<u32>(), 1..CONTAINER_BIT)
        .prop_map(|(database, user)| UserRid { database: DatabaseRid(database), user });
    let item = (container.clone(), 0u64..1 << ORDINAL_BITS)
        .prop_map(|(container, ordinal)| ItemRid { container, ordinal });
    prop_oneof![
        (0u32..1 << 24).prop_map(|number| OfferRid(number).into()),
        any::<u32>().prop_map(|number| DatabaseRid(number).into()),
        container.clone().prop_map(ResourceId::from),
        user.clone().prop_map(ResourceId::from),
        (user, any::<u64>()).prop_map(|(user, permission)| PermissionRid { user, permission }.into()),
        (any::<u32>(), 1..=u32::MAX).prop_map(|(database, key)| {
            ClientEncryptionKeyRid { database: DatabaseRid(database), key }.into()
        }),
        item.clone().prop_map(ResourceId::from),
        (item.clone(), any::<u32>()).prop_map(|(item, attachment)| AttachmentRid { item, attachment }.into()),
        (item, 4u64..=9).prop_map(|(item, nibble)| {
            let kind = ChildKind::from_nibble(nibble).expect("4 to 9 are kinds");
            ChildRid { container: item.container, kind, ordinal: item.ordinal }.into()
        }),
    ]
}

proptest! {
    #[test]
    fn an_id_survives_its_text(id in any_id()) {
        let text = id.to_string();
        prop_assert!(!text.contains('/'));
        prop_assert_eq!(text.parse(), Ok(id));
    }

    #[test]
    fn any_text_parses_or_fails_without_panic(text in any::<String>(), bytes in prop::collection::vec(any::<u8>(), 0..24)) {
        let _ = ResourceId::parse(&text);
        let text = BASE64.encode(&bytes);
        if let Ok(id) = ResourceId::parse(&text) {
            prop_assert_eq!(id.to_string(), text, "one text per id");
        }
    }

    #[test]
    fn items_sort_by_creation_when_their_ordinals_do(a in 0u64..1 << 60, b in 0u64..1 << 60) {
        let rid = |ordinal| ItemRid { container: CONTAINER, ordinal };
        prop_assert_eq!(rid(a).cmp(&rid(b)), a.cmp(&b));
    }
}
