//! Sub-sagas on a real Postgres: started once, waited for, undone with their parent.

mod support;

use std::{sync::Arc, time::Duration};

use orchestrator_lib::{Ended, Key, Node, Reached, Saga, Step};
use support::{Checked, LONG, Lab, Reply, act, end, quick, undo};
use tokio::sync::Semaphore;

fn step(name: &'static str) -> Step<u32, String> {
    Step::new(name, act)
        .compensate(undo)
        .retry(quick())
        .retry_compensation(quick().until_the_lifetime_ends())
}

fn family() -> Result<(Saga<u32>, Saga<u32>), orchestrator_lib::Mistakes> {
    let child = Saga::new("ship", 1)
        .step(step("pack"))
        .step(step("label"))
        .build()?;
    let ship = Step::<u32, String>::saga("ship", &child, |_, input| Ok(*input + 1));
    let parent = Saga::new("order", 1)
        .step(step("reserve"))
        .step(ship)
        .step(step("pay"))
        .build()?;
    Ok((parent, child))
}

async fn family_node(lab: &Lab) -> Result<(Node, Saga<u32>), Box<dyn std::error::Error>> {
    let (parent, child) = family()?;
    let node = Node::builder(lab.config("n1")?)
        .saga(parent.clone())
        .saga(child)
        .retry_node(true)
        .provide(lab.ledger.clone())
        .start()
        .await?;
    Ok((node, parent))
}

#[tokio::test]
async fn a_sub_sagas_result_is_its_steps_result() -> Checked {
    let lab = Lab::new().await?;
    let (node, parent) = family_node(&lab).await?;
    let id = node.start(&parent, "k", 7).await?.id;
    let shipped = node
        .wait_for_step(id, Key::<String>::new("ship"), LONG)
        .await?;
    assert_eq!(shipped, Reached::Done("label8".into()));
    assert!(end(&node, id).await?.is_completed());
    assert_eq!(lab.ledger.calls(), ["reserve", "pack", "label", "pay"]);
    Ok(())
}

#[tokio::test]
async fn a_sub_saga_that_was_undone_refuses_its_step() -> Checked {
    let lab = Lab::new().await?;
    lab.ledger.next("label", [Reply::Business]);
    let (node, parent) = family_node(&lab).await?;
    let id = node.start(&parent, "k", 7).await?.id;
    assert!(matches!(end(&node, id).await?, Ended::Compensated { .. }));
    assert_eq!(
        lab.ledger.calls(),
        ["reserve", "pack", "label", "undo pack", "undo reserve"]
    );
    Ok(())
}

#[tokio::test]
async fn a_completed_sub_saga_is_undone_with_its_parent() -> Checked {
    let lab = Lab::new().await?;
    lab.ledger.next("pay", [Reply::Business]);
    let (node, parent) = family_node(&lab).await?;
    let id = node.start(&parent, "k", 7).await?.id;
    assert!(matches!(end(&node, id).await?, Ended::Compensated { .. }));
    assert_eq!(
        lab.ledger.calls()[3..],
        ["pay", "undo label", "undo pack", "undo reserve"]
    );
    Ok(())
}

#[tokio::test]
async fn a_cancelled_parent_cancels_what_it_started() -> Checked {
    let lab = Lab::new().await?;
    let gate = Arc::new(Semaphore::new(0));
    lab.ledger.next("pack", [Reply::Held(Arc::clone(&gate))]);
    let (node, parent) = family_node(&lab).await?;
    let id = node.start(&parent, "k", 7).await?.id;
    lab.ledger.called(&["reserve", "pack"]).await;
    node.cancel(id, "ann", "no").await?;
    // The parent's cancel, and the one that it sends to its child.
    let cancels = "select count(*) from ringsaga.wake where kind = 'cancel'";
    while lab.count(cancels).await? < 2 {
        tokio::time::sleep(Duration::from_millis(20)).await;
    }
    gate.add_permits(1);
    assert!(matches!(end(&node, id).await?, Ended::Compensated { .. }));
    assert_eq!(
        lab.ledger.calls(),
        ["reserve", "pack", "undo pack", "undo reserve"]
    );
    Ok(())
}
