//! Orders from a CSV file: all rows are good, or every bad one is named by its line.

use std::{collections::BTreeMap, fmt};

use crate::wire::Order;

/// The orders that ship with the shop: 500 of an ordinary week.
pub const SHIPPED: &str = include_str!("../orders.csv");

/// The header that is expected.
pub const HEADER: &str = "order_id,customer,sku,quantity,amount_cents";

/// Most orders in a file: they are held in memory and written into a report.
pub const MOST: usize = 10_000;

/// One thing wrong with a file.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Mistake {
    /// The line, counted from 1, the header included.
    pub line: u64,
    /// What is wrong with it.
    pub says: String,
}

impl fmt::Display for Mistake {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "line {}: {}", self.line, self.says)
    }
}

/// Reads orders.
///
/// # Errors
/// Every mistake, in the order of the lines.
pub fn read(text: &str) -> Result<Vec<Order>, Vec<Mistake>> {
    let mut reader = csv::ReaderBuilder::new()
        .trim(csv::Trim::All)
        .flexible(true)
        .from_reader(text.as_bytes());
    let wrong = |line, says: String| vec![Mistake { line, says }];
    let header = reader
        .headers()
        .map_err(|e| wrong(1, e.to_string()))?
        .clone();
    if header.iter().ne(HEADER.split(',')) {
        let says = format!("the header must be {HEADER:?}");
        return Err(wrong(1, says));
    }
    let mut orders = Vec::new();
    let mut mistakes = Vec::new();
    let mut seen: BTreeMap<String, u64> = BTreeMap::new();
    for row in reader.into_records() {
        let (line, read) = match row {
            Ok(row) => (
                row.position().map_or(0, csv::Position::line),
                one(&row, &header),
            ),
            Err(error) => (
                error.position().map_or(0, csv::Position::line),
                Err(vec![error.to_string()]),
            ),
        };
        let checked = read.and_then(|order| match seen.insert(order.order_id.clone(), line) {
            Some(first) => Err(vec![format!(
                "order_id {:?} is also in line {first}",
                order.order_id
            )]),
            None => Ok(order),
        });
        match checked {
            Ok(order) => orders.push(order),
            Err(all) => mistakes.extend(all.into_iter().map(|says| Mistake { line, says })),
        }
    }
    if orders.is_empty() && mistakes.is_empty() {
        mistakes.push(Mistake {
            line: 2,
            says: "there is no order".to_owned(),
        });
    }
    if orders.len() > MOST {
        let says = format!("at most {MOST} orders, the file has {}", orders.len());
        mistakes.push(Mistake { line: 1, says });
    }
    if mistakes.is_empty() {
        Ok(orders)
    } else {
        Err(mistakes)
    }
}

fn one(row: &csv::StringRecord, header: &csv::StringRecord) -> Result<Order, Vec<String>> {
    if row.len() != header.len() {
        return Err(vec![format!(
            "{} fields, {} are wanted",
            row.len(),
            header.len()
        )]);
    }
    let number = |index: usize| {
        let (name, text) = (&header[index], &row[index]);
        text.parse::<i64>()
            .map_err(|_| format!("{name} must be a whole number, it is {text:?}"))
    };
    let quantity = number(3).and_then(|n| {
        u32::try_from(n).map_err(|_| format!("quantity must be a number of pieces, it is {n}"))
    });
    let (quantity, amount) = (quantity, number(4));
    let mut mistakes: Vec<String> = quantity.clone().err().into_iter().collect();
    mistakes.extend(amount.clone().err());
    let order = Order {
        order_id: row[0].to_owned(),
        customer: row[1].to_owned(),
        sku: row[2].to_owned(),
        // Read already, or in `mistakes`: then a value that adds none.
        quantity: quantity.unwrap_or(1),
        amount_cents: amount.unwrap_or(1),
    };
    mistakes.extend(order.mistakes());
    if mistakes.is_empty() {
        Ok(order)
    } else {
        Err(mistakes)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_shipped_file_has_500_orders() {
        assert_eq!(read(SHIPPED).map(|orders| orders.len()), Ok(500));
    }

    #[test]
    fn every_bad_row_is_named_by_its_line() {
        let text = format!(
            "{HEADER}\nA-1,ann,pen,1,100\nA-2,ann,pen,x,y\nA-1,bob,pen,1,100\nA-3,bob\n\
             A-4,b.b,pen,0,100\n\"A-5\",ann,pen,1,250\n"
        );
        let found = read(&text).unwrap_err();
        let lines: Vec<u64> = found.iter().map(|m| m.line).collect();
        assert_eq!(lines, [3, 3, 4, 5, 6, 6], "{found:?}");
        assert!(found[2].says.contains("line 2"), "{found:?}");
    }

    #[test]
    fn another_header_is_told_what_is_expected() {
        let found = read("id,who\n1,ann\n").unwrap_err();
        assert!(found[0].to_string().contains(HEADER), "{found:?}");
        assert!(read(HEADER).is_err());
    }
}
