use super::super::tests::check;

#[test]
fn parts_are_added_along_the_calendar() {
    check(&[
        (
            "DATETIMEADD",
            r#""yyyy" ; 1 ; "2020-07-03T00:00:00.0000000Z""#,
            r#""2021-07-03T00:00:00.0000000Z""#,
        ),
        ("DATETIMEADD", r#""year" ; 1 ; "2020-02-29""#, r#""2021-02-28T00:00:00.0000000Z""#),
        ("DATETIMEADD", r#""mm" ; 1 ; "2021-01-31""#, r#""2021-02-28T00:00:00.0000000Z""#),
        ("DATETIMEADD", r#""mm" ; -1 ; "2021-01-31""#, r#""2020-12-31T00:00:00.0000000Z""#),
        ("DATETIMEADD", r#""hh" ; -1 ; "2020-07-03""#, r#""2020-07-02T23:00:00.0000000Z""#),
        ("DATETIMEADD", r#""ss" ; -25 ; "2020-07-03""#, r#""2020-07-02T23:59:35.0000000Z""#),
        ("DATETIMEADD", r#""ms" ; 5 ; "2020-07-03""#, r#""2020-07-03T00:00:00.0050000Z""#),
        ("DATETIMEADD", r#""mcs" ; 5 ; "2020-07-03""#, r#""2020-07-03T00:00:00.0000050Z""#),
        ("DATETIMEADD", r#""ns" ; 500 ; "2020-07-03""#, r#""2020-07-03T00:00:00.0000005Z""#),
        ("DATETIMEADD", r#""ns" ; 99 ; "2020-07-03""#, r#""2020-07-03T00:00:00.0000000Z""#),
        ("DATETIMEADD", r#""dd" ; 1.5 ; "2020-07-03""#, "u"),
        ("DATETIMEADD", r#""week" ; 1 ; "2020-07-03""#, "u"),
        ("DATETIMEADD", r#""dd" ; 1 ; "2020-07-32""#, "u"),
        ("DATETIMEADD", r#""yyyy" ; 9000 ; "2020-07-03""#, "u"),
        ("DATETIMEADD", r#""yyyy" ; 9223372036854775807 ; "2020-07-03""#, "u"),
        ("DATETIMEADD", r#""dd" ; 1e300 ; "2020-07-03""#, "u"),
    ]);
}

#[test]
fn differences_count_boundaries() {
    let (from, to) = (r#""2018-03-05T05:00:00.0000000""#, r#""2019-02-04T16:00:00.0000000""#);
    for (part, count) in
        [("yyyy", 1), ("mm", 11), ("dd", 336), ("hh", 8075), ("mi", 484_500), ("ss", 29_070_000)]
    {
        check(&[
            ("DATETIMEDIFF", &format!("\"{part}\" ; {from} ; {to}"), &count.to_string()),
            ("DATETIMEDIFF", &format!("\"{part}\" ; {to} ; {from}"), &(-count).to_string()),
        ]);
    }
    check(&[
        ("DATETIMEDIFF", r#""yyyy" ; "2020-12-31T23:59:59" ; "2021-01-01""#, "1"),
        ("DATETIMEDIFF", r#""ms" ; "1969-12-31T23:59:59.9999Z" ; "1970-01-01""#, "1"),
        ("DATETIMEDIFF", r#""ns" ; "1970-01-01" ; "1970-01-01T00:00:01""#, "1000000000"),
        ("DATETIMEDIFF", r#""ns" ; "0001-01-01" ; "9999-12-31""#, "315537811200000000000"),
        ("DATETIMEDIFF", r#""dd" ; "2020-01-01" ; "nonsense""#, "u"),
        ("DATETIMEDIFF", r#"1 ; "2020-01-01" ; "2020-01-01""#, "u"),
    ]);
}

#[test]
fn bins_start_at_their_origin() {
    let date = r#""2021-01-08T18:35:00.0000000""#;
    for (rest, expected) in [
        (r#""dd""#, "2021-01-08T00:00:00.0000000Z"),
        (r#""hh""#, "2021-01-08T18:00:00.0000000Z"),
        (r#""ss""#, "2021-01-08T18:35:00.0000000Z"),
        (r#""hh" ; 5"#, "2021-01-08T15:00:00.0000000Z"),
        (r#""dd" ; 7"#, "2021-01-07T00:00:00.0000000Z"),
        (r#""dd" ; 7 ; "1601-01-01T00:00:00.0000000""#, "2021-01-04T00:00:00.0000000Z"),
        (r#""yyyy""#, "2021-01-01T00:00:00.0000000Z"),
        (r#""yyyy" ; 5"#, "2020-01-01T00:00:00.0000000Z"),
        (r#""mm" ; 3"#, "2021-01-01T00:00:00.0000000Z"),
        (r#""mm" ; 1 ; "2000-01-15""#, "2020-12-15T00:00:00.0000000Z"),
        (r#""mm" ; 1 ; "2030-01-01""#, "2021-01-01T00:00:00.0000000Z"),
    ] {
        check(&[("DATETIMEBIN", &format!("{date} ; {rest}"), &format!("\"{expected}\""))]);
    }
    for rest in [
        r#""dd" ; 0"#,
        r#""dd" ; -1"#,
        r#""dd" ; 1.5"#,
        r#""dd" ; 1 ; "1600-12-31""#,
        r#""week""#,
        r#""dd" ; u"#,
        r#""yyyy" ; 9223372036854775807"#,
    ] {
        check(&[("DATETIMEBIN", &format!("{date} ; {rest}"), "u")]);
    }
}

#[test]
fn parts_are_taken_out_and_put_together() {
    let date = r#""2016-05-29T08:30:00.1301617""#;
    for (part, expected) in [
        ("yyyy", "2016"),
        ("mm", "5"),
        ("dd", "29"),
        ("hh", "8"),
        ("mi", "30"),
        ("ss", "0"),
        ("ms", "130"),
        ("mcs", "130161"),
        ("ns", "130161700"),
        ("NS", "130161700"),
        ("xx", "u"),
    ] {
        check(&[("DATETIMEPART", &format!("\"{part}\" ; {date}"), expected)]);
    }
    check(&[
        ("YEAR", date, "2016"),
        ("MONTH", date, "5"),
        ("DAY", date, "29"),
        ("DAY", "\"2016-05-32\"", "u"),
        ("DATETIMEFROMPARTS", "2017 ; 4 ; 20", r#""2017-04-20T00:00:00.0000000Z""#),
        ("DATETIMEFROMPARTS", "2017 ; 4 ; 20 ; 13 ; 15 ; 20 ; 3456789", r#""2017-04-20T13:15:20.3456789Z""#),
        ("DATETIMEFROMPARTS", "2017 ; 4 ; 20 ; 13 ; 15", r#""2017-04-20T13:15:00.0000000Z""#),
        ("DATETIMEFROMPARTS", "-2000 ; -1 ; -1", "u"),
        ("DATETIMEFROMPARTS", "2017 ; 4.5 ; 20", "u"),
        ("DATETIMEFROMPARTS", "2017 ; 4 ; 20 ; 24", "u"),
        ("DATETIMEFROMPARTS", "2017 ; 4 ; 20 ; 0 ; 0 ; 0 ; 10000000", "u"),
    ]);
}

#[test]
fn patterns_write_dates() {
    let date = r#""2024-10-09 14:40:20.0450""#;
    for (pattern, expected) in [
        (r"yyyyMMdd", r#""20241009""#),
        (r"yyyy-MM-dd [HH:mm:ss]", r#""2024-10-09 [14:40:20]""#),
        (r"To\\da\\y i\\s: yyyy-MM-ddTHH:mm:ss.fff", r#""Today is: 2024-10-09T14:40:20.045""#),
        (r"ss.FFFFFFF", r#""20.045""#),
        (r"ss.fffffff", r#""20.0450000""#),
        (r"ss.FF", r#""20.04""#),
        (r"ss.F", r#""20.""#),
        (r"d/M/yy H:m:s", r#""9/10/24 14:40:20""#),
        (r"é", r#""é""#),
        (r"ddd", "u"),
        (r"ffffffff", "u"),
        (r"yyyy\\", "u"),
        (r"", r#""""#),
    ] {
        check(&[("DATETIMEFORMAT", &format!("{date} ; \"{pattern}\""), expected)]);
    }
    check(&[
        ("DATETIMEFORMAT", r#""nonsense" ; "yyyy""#, "u"),
        ("DATETIMEFORMAT", r#""2024-10-10" ; 1"#, "u"),
    ]);
}

#[test]
fn dates_are_numbers_and_back() {
    check(&[
        ("DATETIMETOTICKS", r#""2015-05-19T12:00:00.0000000""#, "14320368000000000"),
        ("DATETIMETOTICKS", r#""1969-12-31T23:59:59.9999999Z""#, "-1"),
        ("DATETIMETOTICKS", r#""nonsense""#, "u"),
        ("DATETIMETOTIMESTAMP", r#""2020-07-09T23:20:13.4575530Z""#, "1594336813457"),
        ("DATETIMETOTIMESTAMP", r#""1969-12-31T23:59:59.9999999Z""#, "-1"),
        ("TICKSTODATETIME", "15943368134575530", r#""2020-07-09T23:20:13.4575530Z""#),
        ("TICKSTODATETIME", "-1", r#""1969-12-31T23:59:59.9999999Z""#),
        ("TICKSTODATETIME", "1.5", "u"),
        ("TICKSTODATETIME", "9223372036854775807", "u"),
        ("TIMESTAMPTODATETIME", "1594227912345", r#""2020-07-08T17:05:12.3450000Z""#),
        ("TIMESTAMPTODATETIME", "9223372036854775807", "u"),
        ("TIMESTAMPTODATETIME", "\"1\"", "u"),
    ]);
}

#[test]
fn the_current_time_comes_from_the_context() {
    check(&[
        ("GETCURRENTDATETIME", "", r#""2021-01-02T03:04:05.0000000Z""#),
        ("GETCURRENTDATETIMESTATIC", "", r#""2021-01-02T03:04:05.0000000Z""#),
        ("GETCURRENTTICKS", "", "16095566450000000"),
        ("GETCURRENTTICKSSTATIC", "", "16095566450000000"),
        ("GETCURRENTTIMESTAMP", "", "1609556645000"),
        ("GETCURRENTTIMESTAMPSTATIC", "", "1609556645000"),
        ("NOW", "", r#""2021-01-02T03:04:05.0000000Z""#),
        ("NOW", r#""yyyy" ; 1"#, r#""2022-01-02T03:04:05.0000000Z""#),
        ("NOW", r#""ss" ; -30"#, r#""2021-01-02T03:03:35.0000000Z""#),
        ("NOW", r#""yyyy""#, "u"),
        ("NOW", r#""xx" ; 1"#, "u"),
        ("AGO", r#""ss" ; 30"#, r#""2021-01-02T03:03:35.0000000Z""#),
        ("AGO", r#""yyyy" ; -1"#, r#""2022-01-02T03:04:05.0000000Z""#),
        ("AGO", r#""yyyy" ; 0.5"#, "u"),
    ]);
}
