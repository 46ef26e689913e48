//! Values for the statements of alerts, how many pages each may touch, and the index it must use.
#![allow(clippy::too_many_lines, reason = "a table")]

use super::cases::Case;

pub(crate) fn cases() -> Vec<(&'static str, Case)> {
    let texts = |values: &[&str]| values.iter().map(|v| (*v).to_owned()).collect::<Vec<_>>();
    let scope = texts(&["'eu'", "'main'", "'orders'"]);
    let with = |base: &[String], more: &[&str]| [base.to_vec(), texts(more)].concat();
    vec![
        (
            "alert_raise_missing",
            (
                with(&scope, &["'{s1}'", "'{1}'", "'{missing}'"]),
                50,
                "alert_raised_pkey",
            ),
        ),
        (
            "alert_raise_compensating",
            (
                with(&scope, &["3600000", "100"]),
                3_000,
                "transaction_compensating",
            ),
        ),
        ("alert_tell", (with(&scope, &["256"]), 50, "alert_untold")),
        (
            "alert_forget",
            (texts(&["'eu'", "'main'", "1000"]), 50, "alert_by_age"),
        ),
        (
            "alert_spread",
            (
                texts(&[
                    "'eu'",
                    "'main'",
                    "100",
                    "'{team}'",
                    "'{disabled}'",
                    "'{disabled}'",
                ]),
                50,
                "alert_unspread",
            ),
        ),
        (
            "alert_take",
            (
                texts(&["'eu'", "'main'", "'team'", "10"])
                    .into_iter()
                    .chain([
                        "gen_random_uuid()".to_owned(),
                        "30000".to_owned(),
                        "3000".to_owned(),
                    ])
                    .collect(),
                50,
                "alert_delivery_due",
            ),
        ),
        (
            "alert_delivered",
            (
                texts(&["'team'", "array[gen_random_uuid()]"]),
                50,
                "alert_delivery_pkey",
            ),
        ),
        (
            "alert_failed",
            (
                texts(&[
                    "'eu'",
                    "'main'",
                    "'team'",
                    "array[gen_random_uuid()]",
                    "gen_random_uuid()",
                    "'away'",
                    "1000",
                    "10",
                    "null",
                ]),
                50,
                "alert_delivery_pkey",
            ),
        ),
        (
            "alert_list",
            (
                texts(&["'eu'", "'main'", "false", "100"]),
                50,
                "alert_by_age",
            ),
        ),
        (
            "alert_again",
            (texts(&["'eu'", "'main'", "'team'"]), 50, "alert_delivery"),
        ),
    ]
}
