//! The machine of a transaction, sentence by sentence.
