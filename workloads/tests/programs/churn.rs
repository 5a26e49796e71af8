//! `churn`: its phases and its checksum.

use crate::support::{lines, run};
use serde_json::Value;

fn churn(arguments: &[&str]) -> Vec<Value> {
    let output = run(env!("CARGO_BIN_EXE_churn"), &[&["--scale", "0.05", "--idle", "1ms"], arguments].concat());
    assert_eq!((output.status, output.stderr.as_str()), (0, ""));
    lines(&output.stdout, "churn")
}

#[test]
fn phases_come_in_order_with_what_is_live_and_resident() {
    for arguments in [&["--threads", "1"][..], &["--threads", "3", "--mixed"]] {
        let lines = churn(arguments);
        let phases: Vec<_> = lines.iter().filter(|line| line["kind"] == "phase").collect();
        let names: Vec<_> = phases.iter().map(|phase| phase["phase"].as_str().unwrap()).collect();
        assert_eq!(names, ["start", "burst", "free", "idle", "verify"]);
        let number = |phase: usize, key: &str| phases[phase][key].as_u64().unwrap();
        assert_eq!((number(0, "live_bytes"), number(1, "live_bytes")), (0, 7_500 * 512 + 5_000 * 1024 + 2_500 * 2048));
        assert_eq!(number(1, "live_blocks"), 15_000);
        let survivors = number(4, "live_blocks");
        assert!((750..753).contains(&survivors), "{survivors}");
        // All blocks were written to, so they were resident.
        assert!(number(1, "rss") >= number(0, "rss") + number(1, "live_bytes") * 9 / 10, "{phases:?}");
        assert!((1..5).all(|phase| number(phase, "t_ms") >= number(phase - 1, "t_ms")));
    }
}

#[test]
fn what_is_read_back_is_what_was_predicted() {
    let result = |arguments: &[&str]| churn(arguments).pop().unwrap();
    for arguments in [&["--seed", "1"][..], &["--seed", "2", "--threads", "4", "--mixed"]] {
        let result = result(arguments);
        assert_eq!((&result["kind"], &result["damaged"]), (&Value::from("result"), &Value::from(0)));
        assert_eq!(result["checksum"], result["predicted"]);
    }
    assert_eq!(result(&["--seed", "1"]), result(&["--seed", "1"]));
    assert_ne!(result(&["--seed", "1"])["checksum"], result(&["--seed", "2"])["checksum"]);
}
