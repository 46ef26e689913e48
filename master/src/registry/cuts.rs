//! Cuts in Redis: one hash a window, one field a service, the first value stays.

use std::collections::BTreeMap;
use std::time::Duration;

use ring_core::{
    registry::Told,
    window::{Cut, WindowNo},
    wire::{self, CutWire},
};
use serde::{Deserialize, Serialize};

use super::{Failure, Registry, millis};

#[derive(Serialize, Deserialize)]
struct Stored {
    v: u8,
    #[serde(flatten)]
    cut: CutWire,
}

impl Registry {
    /// One script call a window, with a cut for each of at most
    /// [`MAX_SERVICES`](ring_core::master::MAX_SERVICES): none holds Redis up for long.
    pub(super) async fn store(&mut self, cuts: &[Cut], keep: Duration) -> Result<Told, Failure> {
        let mut windows: BTreeMap<WindowNo, Vec<&Cut>> = BTreeMap::new();
        for cut in cuts {
            windows.entry(cut.window).or_default().push(cut);
        }
        let mut stored = Vec::with_capacity(cuts.len());
        for (window, cuts) in windows {
            let key = self.window_key(window);
            let mut call = self.scripts.store.key(&key);
            call.arg(millis(keep));
            for cut in cuts {
                call.arg(cut.service.as_str());
                call.arg(write(&CutWire::new(&self.holder.timing, cut))?);
            }
            let found: Vec<Option<String>> = call.invoke_async(self.link.connection()?).await?;
            stored.extend(found.iter().flatten().filter_map(|text| read(&key, text)));
        }
        Ok(Told::Stored { cuts: stored })
    }

    pub(super) async fn load(&mut self, windows: &[WindowNo]) -> Result<Told, Failure> {
        let mut pipe = redis::pipe();
        for window in windows {
            pipe.cmd("HVALS").arg(self.window_key(*window));
        }
        let found: Vec<Vec<String>> = pipe.query_async(self.link.connection()?).await?;
        let texts = windows.iter().zip(&found);
        let cuts = texts.flat_map(|(window, texts)| {
            let key = self.window_key(*window);
            texts.iter().filter_map(move |text| read(&key, text))
        });
        Ok(Told::Loaded {
            windows: windows.to_vec(),
            cuts: cuts.collect(),
        })
    }

    fn window_key(&self, window: WindowNo) -> String {
        self.holder.key(&format!("cuts:{window}"))
    }
}

fn write(cut: &CutWire) -> Result<String, Failure> {
    let v = wire::VERSION;
    let cut = cut.clone();
    serde_json::to_string(&Stored { v, cut }).map_err(|error| Failure::Strange(error.to_string()))
}

// What can't be read is not overwritten: it may be a newer program's. The window goes without.
fn read(key: &str, text: &str) -> Option<Cut> {
    match serde_json::from_str::<Stored>(text) {
        Ok(stored) if stored.v == wire::VERSION => Some(stored.cut.open()),
        Ok(stored) => {
            tracing::error!(key, version = stored.v, "a stored cut of another version");
            None
        }
        Err(error) => {
            tracing::error!(key, %error, "a stored cut that can't be read");
            None
        }
    }
}
