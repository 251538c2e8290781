//! The query language: every construct, and every family of functions.

use super::fixture::{CompatibilityFixture, KEY};
use super::{LiveResponse, Probe, Probes, refused};

pub(super) fn probes() -> Probes {
    let mut probes: Probes = ROWS.iter().map(|(id, cases)| (*id, Probe::Rows(cases))).collect();
    probes.push(("sql-udf", refused!(udf, "user-defined functions")));
    probes.push(("sql-is-null", refused!(is_null, "IS")));
    probes
}

async fn udf(fixture: &CompatibilityFixture) -> LiveResponse {
    fixture.account.query("SELECT VALUE udf.tax(c.n) FROM c", &[KEY]).await
}

async fn is_null(fixture: &CompatibilityFixture) -> LiveResponse {
    fixture.account.query("SELECT * FROM c WHERE c.opt IS NULL", &[KEY]).await
}

/// The fixture has three items under the key: n 1 to 3; Alpha, beta, Gamma; tags x and y, y, none.
const ROWS: &[(&str, &[(&str, &str)])] = &[
    (
        "sql-select",
        &[
            (
                "SELECT c.id, c.n AS number, c.inner.k FROM c WHERE c.n = 1",
                r#"[{"id":"1","number":1,"k":"v"}]"#,
            ),
            (
                "SELECT c.n + 1, [c.n], {'a': c.n} AS o FROM c WHERE c.n = 1",
                r#"[{"$1":2,"$2":[1],"o":{"a":1}}]"#,
            ),
        ],
    ),
    ("sql-select-star", &[("SELECT * FROM c.inner", r#"[{"k":"v"}]"#)]),
    ("sql-select-value", &[("SELECT VALUE c.n FROM c", "[1,2,3]"), ("SELECT VALUE c.missing FROM c", "[]")]),
    ("sql-distinct", &[("SELECT DISTINCT VALUE c.even FROM c", "[false,true]")]),
    (
        "sql-top",
        &[("SELECT TOP 2 VALUE c.n FROM c ORDER BY c.n DESC", "[3,2]"), ("SELECT TOP 0 * FROM c", "[]")],
    ),
    ("sql-from-path", &[("SELECT VALUE inner FROM c.inner", r#"[{"k":"v"}]"#)]),
    ("sql-from-in", &[("SELECT VALUE t FROM t IN c.tags", r#"["x","y","y"]"#)]),
    ("sql-from-subquery", &[("SELECT VALUE x.m FROM (SELECT c.n * 2 AS m FROM c) x", "[2,4,6]")]),
    ("sql-no-from", &[("SELECT 1 AS one", r#"[{"one":1}]"#)]),
    (
        "sql-join",
        &[("SELECT c.n, t FROM c JOIN t IN c.tags", r#"[{"n":1,"t":"x"},{"n":1,"t":"y"},{"n":2,"t":"y"}]"#)],
    ),
    (
        "sql-join-subquery",
        &[
            ("SELECT VALUE t FROM c JOIN t IN (SELECT VALUE s FROM s IN c.tags WHERE s != 'y')", r#"[]"#),
            ("SELECT VALUE t FROM c JOIN (SELECT VALUE s FROM s IN c.tags WHERE s != 'y') t", r#"["x"]"#),
        ],
    ),
    ("sql-where", &[("SELECT VALUE c.n FROM c WHERE c.n > 1 AND NOT c.even OR c.name = 'beta'", "[2,3]")]),
    (
        "sql-group-by",
        &[(
            "SELECT c.even, COUNT(1) AS k, SUM(c.n) AS s FROM c GROUP BY c.even",
            r#"[{"even":false,"k":2,"s":4},{"even":true,"k":1,"s":2}]"#,
        )],
    ),
    (
        "sql-order-by",
        &[
            ("SELECT VALUE c.name FROM c ORDER BY c.name", r#"["Alpha","Gamma","beta"]"#),
            ("SELECT VALUE c.n FROM c ORDER BY c.opt", "[1,3,2]"),
        ],
    ),
    ("sql-order-by-several", &[("SELECT VALUE c.n FROM c ORDER BY c.even DESC, c.n ASC", "[2,1,3]")]),
    ("sql-offset-limit", &[("SELECT VALUE c.n FROM c ORDER BY c.n OFFSET 1 LIMIT 1", "[2]")]),
    ("sql-scalar-subquery", &[("SELECT VALUE (SELECT VALUE COUNT(1) FROM t IN c.tags) FROM c", "[2,1,0]")]),
    (
        "sql-exists",
        &[("SELECT VALUE c.n FROM c WHERE EXISTS(SELECT VALUE t FROM t IN c.tags WHERE t = 'x')", "[1]")],
    ),
    (
        "sql-array",
        &[(
            "SELECT VALUE ARRAY(SELECT VALUE UPPER(t) FROM t IN c.tags) FROM c WHERE c.n = 1",
            r#"[["X","Y"]]"#,
        )],
    ),
    (
        "sql-all-first-last",
        &[(
            "SELECT VALUE [ALL(SELECT VALUE t = 'y' FROM t IN c.tags), FIRST(SELECT VALUE t FROM t IN c.tags), LAST(SELECT VALUE t FROM t IN c.tags)] FROM c WHERE c.n = 1",
            r#"[[false,"x","y"]]"#,
        )],
    ),
    ("sql-between", &[("SELECT VALUE c.n FROM c WHERE c.n BETWEEN 2 AND 3", "[2,3]")]),
    ("sql-in", &[("SELECT VALUE c.n FROM c WHERE c.n IN (1, 3) AND c.n NOT IN (3)", "[1]")]),
    (
        "sql-like",
        &[(
            "SELECT VALUE c.n FROM c WHERE c.name LIKE '%[l-m]_ha' OR c.name LIKE 'be!ta' ESCAPE '!'",
            "[1,2]",
        )],
    ),
    ("sql-coalesce", &[("SELECT VALUE c.opt ?? 'none' FROM c", r#"["none",null,"none"]"#)]),
    ("sql-conditional", &[("SELECT VALUE c.even ? 'e' : 'o' FROM c", r#"["o","e","o"]"#)]),
    ("sql-arithmetic", &[("SELECT VALUE [7 + 2, 7 - 2, 7 * 2, 7 / 2, 7 % 2, -7]", "[[9,5,14,3.5,1,-7]]")]),
    (
        "sql-bitwise",
        &[("SELECT VALUE [6 & 3, 6 | 3, 6 ^ 3, ~6, 6 << 1, -6 >> 1, -1 >>> 31]", "[[2,7,5,-7,12,-3,1]]")],
    ),
    (
        "sql-comparison",
        &[(
            "SELECT VALUE [1 = 1.0, 1 != '1', 1 <> 2, 'a' < 'b', [1] = [1], 1 < 'a']",
            "[[true,true,true,true,true]]",
        )],
    ),
    ("sql-concatenation", &[("SELECT VALUE 'a' || 'b' || 'c'", r#"["abc"]"#)]),
    (
        "sql-undefined",
        &[
            ("SELECT VALUE [undefined, c.missing, 1] FROM c WHERE c.n = 1", "[[1]]"),
            ("SELECT c.missing FROM c WHERE c.n = 1", "[{}]"),
        ],
    ),
    (
        "sql-literals",
        &[(
            "SELECT VALUE [\"q\", 'é\\u0041\\n', 0x1F, 1.5e1, true, null, {'a': [1]}]",
            r#"[["q","éA\n",31,15,true,null,{"a":[1]}]]"#,
        )],
    ),
    ("sql-comments", &[("SELECT VALUE /* here */ 1 -- there", "[1]")]),
    (
        "sql-brackets",
        &[("SELECT VALUE [c['n'], c.tags[1], c[\"inner\"].k] FROM c WHERE c.n = 1", r#"[[1,"y","v"]]"#)],
    ),
    (
        "sql-aggregates",
        &[
            (
                "SELECT COUNT(1) AS a, SUM(c.n) AS b, AVG(c.n) AS c, MIN(c.n) AS d, MAX(c.name) AS e FROM c",
                r#"[{"a":3,"b":6,"c":2,"d":1,"e":"beta"}]"#,
            ),
            ("SELECT VALUE COUNTIF(c.even) FROM c", "[1]"),
            ("SELECT VALUE MAKELIST(c.n) FROM c", "[[1,2,3]]"),
            ("SELECT VALUE MAKESET(c.even) FROM c", "[[false,true]]"),
            ("SELECT VALUE COUNT(1) FROM c WHERE false", "[0]"),
            ("SELECT VALUE MIN(c.n) FROM c WHERE false", "[]"),
        ],
    ),
    (
        "sql-computed-properties",
        &[(
            "SELECT VALUE c.lowerName FROM c WHERE c.lowerName LIKE 'g%' ORDER BY c.lowerName",
            r#"["gamma"]"#,
        )],
    ),
    (
        "functions-type",
        &[(
            "SELECT VALUE [IS_ARRAY([]), IS_BOOL(1), IS_DEFINED(null), IS_NULL(null), IS_NUMBER(1), IS_OBJECT({}), IS_PRIMITIVE([]), IS_STRING(''), IS_FINITE_NUMBER(1/0), IS_INTEGER(1.5), IS_DATETIME('2020-01-01')]",
            "[[true,false,true,true,true,true,false,true,false,false,true]]",
        )],
    ),
    (
        "functions-string",
        &[
            (
                "SELECT VALUE [CONCAT('a','b'), CONTAINS('Abc','B',true), STARTSWITH('ab','a'), ENDSWITH('ab','b'), STRINGEQUALS('a','A',true), INDEX_OF('abc','c'), LASTINDEXOF('abab','b'), LEFT('abc',2), RIGHT('abc',2), SUBSTRING('abc',1,1), LENGTH('é'), LOWER('A'), UPPER('a'), REVERSE('ab')]",
                r#"[["ab",true,true,true,true,2,3,"ab","bc","b",1,"a","A","ba"]]"#,
            ),
            (
                "SELECT VALUE [LTRIM(' a'), RTRIM('a '), TRIM('xax','x'), REPLACE('aa','a','b'), REPLICATE('a',3), STRINGJOIN(['a','b'],'-'), STRINGSPLIT('a-b','-'), CONTAINS_ANY_CI('ABC','b'), CONTAINS_ALL_CS('ABC','A','B')]",
                r#"[["a","a","a","bb","aaa","a-b",["a","b"],true,true]]"#,
            ),
        ],
    ),
    (
        "functions-regex",
        &[("SELECT VALUE [REGEXMATCH('abcd','^AB','i'), REGEXMATCH('abcd','^b')]", "[[true,false]]")],
    ),
    (
        "functions-conversion",
        &[(
            "SELECT VALUE [STRINGTOARRAY('[1]'), STRINGTOOBJECT('{\"a\":1}'), STRINGTOBOOLEAN('true'), STRINGTONULL('null'), STRINGTONUMBER('1.5'), TOSTRING([1])]",
            r#"[[[1],{"a":1},true,null,1.5,"[1]"]]"#,
        )],
    ),
    (
        "functions-array",
        &[(
            "SELECT VALUE [ARRAY_CONCAT([1],[2]), ARRAY_CONTAINS([1,2],2), ARRAY_CONTAINS_ANY([1],2,1), ARRAY_CONTAINS_ALL([1],1,2), ARRAY_LENGTH([1]), ARRAY_SLICE([1,2,3],1), ARRAY_SUM([1,2]), ARRAY_AVG([1,2]), ARRAY_MEDIAN([3,1,2]), ARRAY_MIN([2,1]), ARRAY_MAX([2,1])]",
            "[[[1,2],true,true,false,1,[2,3],3,1.5,2,1,2]]",
        )],
    ),
    (
        "functions-set",
        &[(
            "SELECT VALUE [SETINTERSECT([1,2],[2]), SETUNION([1],[2]), SETDIFFERENCE([1,2],[2]), SETEQUAL([1,1],[1])]",
            "[[[2],[1,2],[1],true]]",
        )],
    ),
    (
        "functions-object",
        &[("SELECT VALUE [CHOOSE(2,'a','b'), OBJECTTOARRAY({'a':1})]", r#"[["b",[{"k":"a","v":1}]]]"#)],
    ),
    (
        "functions-math",
        &[
            (
                "SELECT VALUE [ABS(-1), CEILING(1.2), FLOOR(1.8), ROUND(2.5), SIGN(-3), SQRT(9), SQUARE(3), TRUNC(1.9), POWER(2,3), LOG10(100), EXP(0), LOG(1), NUMBERBIN(37.752,10)]",
                "[[1,2,1,3,-1,3,9,1,8,2,1,0,30]]",
            ),
            (
                "SELECT VALUE [SIN(0), COS(0), TAN(0), ASIN(0), ACOS(1), ATAN(0), ATN2(0,1), DEGREES(0), RADIANS(0), PI() > 3, RAND() < 1, COT(1) > 0]",
                "[[0,1,0,0,0,0,0,0,0,true,true,true]]",
            ),
        ],
    ),
    (
        "functions-integer",
        &[(
            "SELECT VALUE [INTADD(1,2), INTSUB(1,2), INTMUL(2,3), INTDIV(7,2), INTMOD(-7,2), INTBITAND(6,3), INTBITOR(6,3), INTBITXOR(6,3), INTBITNOT(6), INTBITLEFTSHIFT(1,3), INTBITRIGHTSHIFT(8,3)]",
            "[[3,-1,6,3,-1,2,7,5,-7,8,1]]",
        )],
    ),
    ("functions-conditional", &[("SELECT VALUE [IIF(true,1,2), IIF('x',1,2)]", "[[1,2]]")]),
    (
        "functions-date-time",
        &[(
            "SELECT VALUE [DATETIMEADD('mm',1,'2020-01-31T00:00:00Z'), DATETIMEDIFF('day','2020-01-01','2020-01-03'), DATETIMEPART('year','2020-01-01'), YEAR('2020-01-01'), DATETIMEFROMPARTS(2020,1,2), DATETIMETOTICKS('2015-05-19T12:00:00Z'), TIMESTAMPTODATETIME(0), DATETIMEBIN('2020-01-02T03:04:05Z','hh')]",
            r#"[["2020-02-29T00:00:00.0000000Z",2,2020,2020,"2020-01-02T00:00:00.0000000Z",14320368000000000,"1970-01-01T00:00:00.0000000Z","2020-01-02T03:00:00.0000000Z"]]"#,
        )],
    ),
    (
        "functions-now",
        &[(
            "SELECT VALUE [IS_DATETIME(GETCURRENTDATETIME()), GETCURRENTTIMESTAMP() > 0, GETCURRENTTICKS() > 0, GETCURRENTTICKSSTATIC() = GETCURRENTTICKSSTATIC(), NOW() > AGO('dd', 1)]",
            "[[true,true,true,true,true]]",
        )],
    ),
    (
        "functions-spatial",
        &[(
            "SELECT VALUE [ST_WITHIN({'type':'Point','coordinates':[1,1]}, {'type':'Polygon','coordinates':[[[0,0],[2,0],[2,2],[0,2],[0,0]]]}), ST_INTERSECTS({'type':'Point','coordinates':[5,5]}, {'type':'Point','coordinates':[5,5]}), ST_ISVALID({'type':'Point','coordinates':[0,95]}), ST_DISTANCE({'type':'Point','coordinates':[0,0]}, {'type':'Point','coordinates':[0,0]}), ST_AREA({'type':'Polygon','coordinates':[[[0,0],[1,0],[1,1],[0,1],[0,0]]]}) > 1e10, ST_ISVALIDDETAILED({'type':'Point','coordinates':[0,0]})]",
            r#"[[true,true,false,0,true,{"valid":true}]]"#,
        )],
    ),
    (
        "functions-full-text",
        &[
            ("SELECT VALUE c.id FROM c WHERE FULLTEXTCONTAINS(c.text, 'swim')", r#"["2","3"]"#),
            (
                "SELECT VALUE c.id FROM c WHERE FULLTEXTCONTAINSALL(c.text, 'fox', 'swim') OR FULLTEXTCONTAINSANY(c.text, 'brown')",
                r#"["1","3"]"#,
            ),
            ("SELECT VALUE c.id FROM c WHERE FULLTEXTCONTAINSANY(c.text, 'the', 'in', 'a')", "[]"),
            ("SELECT VALUE c.id FROM c WHERE FULLTEXTCONTAINS(c.text, 'swimming lake')", r#"["2"]"#),
            ("SELECT VALUE _FULLTEXTWORDCOUNT(c.text) FROM c", "[3,2,2]"),
            (
                "SELECT VALUE [FULLTEXTCONTAINS('paid 1,000.50', '1,000.50'), FULLTEXTCONTAINS('paid 1,000.50', '000')]",
                "[[true,false]]",
            ),
        ],
    ),
    (
        "functions-vector",
        &[
            ("SELECT VALUE VECTORDISTANCE(c.vector, [1,0,0]) FROM c", "[1,0,0]"),
            ("SELECT TOP 2 VALUE c.id FROM c ORDER BY VECTORDISTANCE(c.vector, [0,0,1])", r#"["3","1"]"#),
        ],
    ),
    (
        "sql-rank",
        &[("SELECT TOP 1 VALUE c.id FROM c ORDER BY RANK FULLTEXTSCORE(c.text, 'lake')", r#"["2"]"#)],
    ),
    (
        "sql-rank-fusion",
        &[(
            "SELECT TOP 1 VALUE c.id FROM c ORDER BY RANK RRF(FULLTEXTSCORE(c.text, 'fox'), VECTORDISTANCE(c.vector, [1,0,0]))",
            r#"["1"]"#,
        )],
    ),
    ("functions-document-id", &[("SELECT VALUE DOCUMENTID(c) > 0 FROM c WHERE c.n = 1", "[true]")]),
];
