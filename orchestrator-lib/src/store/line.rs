//! Rows of a batch as one parameter: an array of a composite type of the store's schema. Decides
//! how a row travels; refuses to know what its fields mean.

use std::error::Error as StdError;

use bytes::{BufMut, BytesMut};
use tokio_postgres::types::{Field, IsNull, Kind, ToSql, Type, to_sql_checked};

use super::error::Reason;

/// Why a row could not be put.
pub(super) type Failure = Box<dyn StdError + Sync + Send>;

/// A row with the fields of a composite type, in the type's order.
pub(super) trait Line: std::fmt::Debug {
    /// The type's name within the store's schema.
    const TYPE: &'static str;

    /// Puts every field.
    fn put(&self, fields: &mut Fields<'_>) -> Result<(), Failure>;
}

/// A line as the driver takes it.
#[derive(Debug)]
pub(super) struct AsRow<T>(pub(super) T);

/// The fields of a row that are still to be put.
pub(super) struct Fields<'a> {
    left: std::slice::Iter<'a, Field>,
    out: &'a mut BytesMut,
}

impl Fields<'_> {
    /// The next field.
    pub(super) fn put(&mut self, value: &impl ToSql) -> Result<(), Failure> {
        let field = self
            .left
            .next()
            .ok_or(Reason("the type has fewer fields"))?;
        let ty = field.type_();
        self.out.put_u32(ty.oid());
        let at = self.out.len();
        self.out.put_i32(-1);
        if let IsNull::No = value.to_sql(ty, self.out)? {
            let length = i32::try_from(self.out.len() - at - 4)?;
            self.out[at..at + 4].copy_from_slice(&length.to_be_bytes());
        }
        Ok(())
    }
}

impl<T: Line> ToSql for AsRow<T> {
    fn to_sql(&self, ty: &Type, out: &mut BytesMut) -> Result<IsNull, Failure> {
        let Kind::Composite(fields) = ty.kind() else {
            return Err(Reason("not a composite type").into());
        };
        out.put_i32(i32::try_from(fields.len())?);
        let mut fields = Fields {
            left: fields.iter(),
            out,
        };
        self.0.put(&mut fields)?;
        if fields.left.len() > 0 {
            return Err(Reason("the type has more fields").into());
        }
        Ok(IsNull::No)
    }

    fn accepts(ty: &Type) -> bool {
        ty.name() == T::TYPE && matches!(ty.kind(), Kind::Composite(_))
    }

    to_sql_checked!();
}
