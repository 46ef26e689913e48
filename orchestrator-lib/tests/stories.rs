//! The examples do what they say.

mod support;

use support::{Checked, Lab};

#[path = "../examples/approval.rs"]
mod approval;
#[path = "../examples/reservations.rs"]
mod reservations;

#[tokio::test]
async fn an_approval_is_waited_for_and_a_deadline_refuses() -> Checked {
    let lab = Lab::new().await?;
    let told = approval::run(lab.config("n1")?).await?;
    assert_eq!(told[0], "ann: paid 900 cents");
    assert_eq!(told[1], "bob: paid 50000 cents, approved by the boss");
    assert!(
        told[2].starts_with("eve: withdrawn, because approval: no signal"),
        "{told:?}"
    );
    Ok(())
}

#[tokio::test]
async fn parallel_reservations_are_paid_together_or_undone() -> Checked {
    let lab = Lab::new().await?;
    let told = reservations::run(lab.config("n1")?).await?;
    assert_eq!(told[0], "Rome: paid 60000 cents");
    assert!(
        told[1].starts_with("Tokyo: undone, because pay:"),
        "{told:?}"
    );
    assert_eq!(told[2], "held: car in Rome, flight to Rome, hotel in Rome");
    Ok(())
}
