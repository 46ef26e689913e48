//! What a user writes: order, inventory and payment services.
