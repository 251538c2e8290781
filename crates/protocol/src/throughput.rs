//! Provisioned throughput, and the offers that describe it.
//!
//! Input: the headers of a create request, the body of an offer. Output: a validated [`Throughput`], the
//! body of an offer. The number of partitions, and enforcing the throughput, is left to the server.

use serde::{Deserialize, Serialize};
use serde_json::{Map, Value};

use crate::definition_error::{DefinitionError, INVALID_INPUT};
use crate::resource::SystemProperties;
use crate::resource_id::OfferRid;

/// The least manual throughput, which is also the default of a container.
pub const MANUAL_MIN: u32 = 400;
/// The step of manual throughput.
pub const MANUAL_STEP: u32 = 100;
/// The least maximum of autoscale throughput.
pub const AUTOSCALE_MIN: u32 = 1000;
/// The step of the maximum of autoscale throughput.
pub const AUTOSCALE_STEP: u32 = 1000;
/// The most throughput that can be provisioned without a support request.
pub const THROUGHPUT_MAX: u32 = 1_000_000;

/// Provisioned throughput, in request units per second.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Throughput {
    /// A constant throughput at all times.
    Manual(u32),
    /// A throughput that scales from a tenth of the maximum up to the maximum.
    Autoscale {
        /// The maximum throughput, in request units per second.
        max: u32,
        /// By how many percent the service may raise the maximum automatically.
        increment_percent: Option<u32>,
    },
}

impl Throughput {
    /// A constant throughput of `units`.
    pub fn manual(units: u32) -> Throughput {
        Throughput::Manual(units)
    }

    /// A throughput that scales from a tenth of `max` up to `max`.
    pub fn autoscale(max: u32) -> Throughput {
        Throughput::Autoscale { max, increment_percent: None }
    }

    /// The throughput that the headers of a create request ask for; `None` if they do not ask for one.
    pub fn from_headers(
        manual: Option<&str>,
        autopilot: Option<&str>,
    ) -> Result<Option<Throughput>, DefinitionError> {
        let throughput = match (manual, autopilot) {
            (None, None) => return Ok(None),
            (Some(_), Some(_)) => {
                return Err(invalid(format!(
                    "{INVALID_INPUT}: x-ms-offer-throughput and x-ms-cosmos-offer-autopilot-settings exclude each \
                     other."
                )));
            }
            (Some(manual), None) => {
                Throughput::Manual(manual.trim().parse().map_err(|_| manual_out_of_range())?)
            }
            (None, Some(settings)) => {
                let settings: AutopilotSettings = serde_json::from_str(settings).map_err(|error| {
                    invalid(format!("{INVALID_INPUT}: x-ms-cosmos-offer-autopilot-settings: {error}"))
                })?;
                settings.throughput()?
            }
        };
        throughput.validate()?;
        Ok(Some(throughput))
    }

    /// Validates limits and steps.
    pub fn validate(&self) -> Result<(), DefinitionError> {
        match *self {
            Throughput::Manual(units) => {
                let good = (MANUAL_MIN..=THROUGHPUT_MAX).contains(&units) && units % MANUAL_STEP == 0;
                good.then_some(()).ok_or_else(manual_out_of_range)
            }
            Throughput::Autoscale { max, .. } if max < AUTOSCALE_MIN => {
                Err(autoscale_below_minimum(max.into()))
            }
            Throughput::Autoscale { max, .. } => {
                let good = (AUTOSCALE_MIN..=THROUGHPUT_MAX).contains(&max) && max % AUTOSCALE_STEP == 0;
                good.then_some(()).ok_or_else(autoscale_out_of_range)
            }
        }
    }

    /// The largest throughput it can reach.
    pub fn max(&self) -> u32 {
        match *self {
            Throughput::Manual(units) => units,
            Throughput::Autoscale { max, .. } => max,
        }
    }

    /// The `offerThroughput` of an offer: the throughput, or a tenth of the autoscale maximum.
    pub fn offer_throughput(&self) -> u32 {
        match *self {
            Throughput::Manual(units) => units,
            Throughput::Autoscale { max, .. } => max / 10,
        }
    }
}

fn manual_out_of_range() -> DefinitionError {
    invalid(format!(
        "The offer should have valid throughput values between {MANUAL_MIN} and {THROUGHPUT_MAX} inclusive in \
         increments of {MANUAL_STEP}."
    ))
}

fn autoscale_below_minimum(max: i64) -> DefinitionError {
    invalid(format!("Requested throughput {max} is less than required minimum throughput {AUTOSCALE_MIN}."))
}

fn autoscale_out_of_range() -> DefinitionError {
    invalid(format!(
        "The autoscale offer should have a valid maximum throughput between {AUTOSCALE_MIN} and {THROUGHPUT_MAX} \
         inclusive in increments of {AUTOSCALE_STEP}."
    ))
}

fn invalid(message: String) -> DefinitionError {
    DefinitionError { message }
}

/// An offer: the provisioned throughput of one database or container.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct Offer {
    /// The `_self` link of the database or container.
    #[serde(default)]
    pub resource: String,
    /// The type, which is `Invalid` for all but very old offers.
    #[serde(default)]
    pub offer_type: String,
    /// The `_rid` of the database or container.
    #[serde(default)]
    pub offer_resource_id: String,
    /// The version of the format, which is `V2`.
    #[serde(default)]
    pub offer_version: String,
    /// The throughput of the offer.
    pub content: OfferContent,
    /// The id of the offer, which equals its `_rid`.
    #[serde(default)]
    pub id: String,
    /// The system properties of the offer.
    #[serde(flatten)]
    pub system: SystemProperties,
}

/// The throughput that an offer describes.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase")]
pub struct OfferContent {
    /// Request units per second; for autoscale a tenth of the maximum.
    #[serde(default)]
    pub offer_throughput: i64,
    /// A switch that no longer has an effect.
    #[serde(default, rename = "offerIsRUPerMinuteThroughputEnabled")]
    pub offer_is_ru_per_minute_throughput_enabled: bool,
    /// The figures from which the minimum follows.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offer_minimum_throughput_parameters: Option<MinimumThroughput>,
    /// The autoscale settings, if the throughput is autoscale.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub offer_autopilot_settings: Option<AutopilotSettings>,
    /// Present while a change of throughput is in progress.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub is_offer_replace_pending: Option<bool>,
    /// Further properties, kept as they were sent.
    #[serde(flatten)]
    pub other: Map<String, Value>,
}

/// The figures from which the minimum throughput follows.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct MinimumThroughput {
    /// The largest throughput ever provisioned.
    #[serde(rename = "maxThroughputEverProvisioned", default)]
    pub throughput_max_ever: i64,
    /// The largest storage ever used, in KB.
    #[serde(rename = "maxConsumedStorageEverInKB", default)]
    pub storage_kb_max_ever: i64,
}

/// Autoscale settings, as headers and offers write them.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AutopilotSettings {
    /// A number that no longer has an effect.
    pub tier: i64,
    /// A number that no longer has an effect.
    pub maximum_tier_throughput: i64,
    /// A switch that no longer has an effect.
    pub auto_upgrade: bool,
    /// The maximum throughput, in request units per second.
    pub max_throughput: i64,
    /// Whether the service may raise the maximum automatically.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub auto_upgrade_policy: Option<AutoUpgradePolicy>,
}

/// How the service may raise a maximum automatically.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct AutoUpgradePolicy {
    /// By how much the maximum may be raised.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub throughput_policy: Option<ThroughputPolicy>,
}

/// By how much a maximum may be raised.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "camelCase", default)]
pub struct ThroughputPolicy {
    /// The increment, in percent.
    pub increment_percent: u32,
}

impl AutopilotSettings {
    fn throughput(&self) -> Result<Throughput, DefinitionError> {
        let max = u32::try_from(self.max_throughput).map_err(|_| match self.max_throughput {
            below @ ..0 => autoscale_below_minimum(below),
            _ => autoscale_out_of_range(),
        })?;
        let policy = self.auto_upgrade_policy.as_ref().and_then(|policy| policy.throughput_policy.as_ref());
        Ok(Throughput::Autoscale { max, increment_percent: policy.map(|policy| policy.increment_percent) })
    }
}

impl Offer {
    /// The offer of `throughput` for a resource with this `_rid` and `_self`.
    pub fn new(rid: OfferRid, throughput: &Throughput, target: (&str, &str), etag: &str, ts: u64) -> Offer {
        let (target_rid, target_self) = target;
        let id = rid.to_string();
        Offer {
            resource: target_self.to_owned(),
            offer_type: "Invalid".to_owned(),
            offer_resource_id: target_rid.to_owned(),
            offer_version: "V2".to_owned(),
            content: OfferContent::new(throughput),
            system: SystemProperties {
                rid: id.clone(),
                self_link: rid.self_link(),
                etag: etag.to_owned(),
                ts,
            },
            id,
        }
    }

    /// The validated throughput of the offer, as a replace request asks for it.
    pub fn throughput(&self) -> Result<Throughput, DefinitionError> {
        let throughput = match &self.content.offer_autopilot_settings {
            Some(settings) => settings.throughput()?,
            None => {
                let units =
                    u32::try_from(self.content.offer_throughput).map_err(|_| manual_out_of_range())?;
                Throughput::Manual(units)
            }
        };
        throughput.validate()?;
        Ok(throughput)
    }
}

impl OfferContent {
    /// The content of an offer of `throughput`.
    pub fn new(throughput: &Throughput) -> OfferContent {
        let settings = match throughput {
            Throughput::Manual(_) => None,
            Throughput::Autoscale { max, increment_percent } => Some(AutopilotSettings {
                max_throughput: i64::from(*max),
                auto_upgrade_policy: increment_percent.map(|increment_percent| AutoUpgradePolicy {
                    throughput_policy: Some(ThroughputPolicy { increment_percent }),
                }),
                ..AutopilotSettings::default()
            }),
        };
        OfferContent {
            offer_throughput: i64::from(throughput.offer_throughput()),
            offer_is_ru_per_minute_throughput_enabled: false,
            offer_minimum_throughput_parameters: Some(MinimumThroughput {
                throughput_max_ever: i64::from(throughput.max()),
                storage_kb_max_ever: 0,
            }),
            offer_autopilot_settings: settings,
            is_offer_replace_pending: None,
            other: Map::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_ask_for_manual_or_autoscale_but_not_both() {
        let autoscale = |max, increment_percent| Some(Throughput::Autoscale { max, increment_percent });
        let raised =
            r#"{"maxThroughput":5000,"autoUpgradePolicy":{"throughputPolicy":{"incrementPercent":42}}}"#;
        for (manual, autopilot, expected) in [
            (None, None, Some(None)),
            (Some("400"), None, Some(Some(Throughput::Manual(400)))),
            (Some("10100"), None, Some(Some(Throughput::Manual(10100)))),
            (None, Some(r#"{"maxThroughput":1000}"#), Some(autoscale(1000, None))),
            (None, Some(raised), Some(autoscale(5000, Some(42)))),
            (Some("400"), Some(raised), None),
            (Some("300"), None, None),
            (Some("450"), None, None),
            (Some("-400"), None, None),
            (Some("lots"), None, None),
            (Some("99999999999"), None, None),
            (None, Some(r#"{"maxThroughput":500}"#), None),
            (None, Some(r#"{"maxThroughput":1500}"#), None),
            (None, Some(r#"{"maxThroughput":-1}"#), None),
            (None, Some("{}"), None),
            (None, Some("5000"), None),
        ] {
            assert_eq!(
                Throughput::from_headers(manual, autopilot).ok(),
                expected,
                "{manual:?} {autopilot:?}"
            );
        }
    }

    #[test]
    fn an_offer_has_the_services_members() {
        let target = ("AAAAAIAAAAA=", "dbs/AAAAAA==/colls/AAAAAIAAAAA=/");
        let offer = Offer::new(OfferRid(0x69B71D), &Throughput::Manual(400), target, "\"e\"", 1_700_000_000);
        let expected = r#"{"resource":"dbs/AAAAAA==/colls/AAAAAIAAAAA=/","offerType":"Invalid","offerResourceId":"AAAAAIAAAAA=",
            "offerVersion":"V2","content":{"offerThroughput":400,"offerIsRUPerMinuteThroughputEnabled":false,
            "offerMinimumThroughputParameters":{"maxThroughputEverProvisioned":400,"maxConsumedStorageEverInKB":0}},
            "id":"abcd","_rid":"abcd","_self":"offers/abcd/","_etag":"\"e\"","_ts":1700000000}"#;
        let body = serde_json::to_value(&offer).expect("plain data");
        assert_eq!(body, serde_json::from_str::<Value>(expected).expect("json"));
        let read: Offer = serde_json::from_value(body).expect("what was written");
        assert_eq!(read.throughput(), Ok(Throughput::Manual(400)));
    }

    #[test]
    fn an_autoscale_maximum_below_the_minimum_is_rejected() {
        for max in [-200, 0, 500] {
            let settings = format!(r#"{{"maxThroughput":{max}}}"#);
            let message = Throughput::from_headers(None, Some(&settings)).expect_err("too little").message;
            let expected =
                format!("Requested throughput {max} is less than required minimum throughput 1000");
            assert!(message.contains(&expected), "{message}");
        }
    }

    #[test]
    fn the_offer_throughput_of_autoscale_is_a_tenth_of_its_maximum() {
        let throughput = Throughput::Autoscale { max: 5000, increment_percent: Some(42) };
        let content = OfferContent::new(&throughput);
        assert_eq!(content.offer_throughput, 500);
        let settings = serde_json::to_value(&content.offer_autopilot_settings).expect("plain data");
        let expected = r#"{"tier":0,"maximumTierThroughput":0,"autoUpgrade":false,"maxThroughput":5000,"autoUpgradePolicy":{"throughputPolicy":{"incrementPercent":42}}}"#;
        assert_eq!(settings, serde_json::from_str::<Value>(expected).expect("json"));
    }

    #[test]
    fn a_replaced_offer_is_checked_like_a_header() {
        for (content, expected) in [
            (r#"{"offerThroughput":500}"#, Some(Throughput::Manual(500))),
            (
                r#"{"offerThroughput":500,"offerAutopilotSettings":{"maxThroughput":7000}}"#,
                Some(Throughput::Autoscale { max: 7000, increment_percent: None }),
            ),
            (r#"{"offerThroughput":555}"#, None),
            (r#"{"offerThroughput":-1}"#, None),
            ("{}", None),
        ] {
            let offer: Offer =
                serde_json::from_str(&format!(r#"{{"content":{content}}}"#)).expect("an offer");
            assert_eq!(offer.throughput().ok(), expected, "{content}");
        }
    }
}
