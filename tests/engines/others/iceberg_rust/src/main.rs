//! DataFusion's SQL over iceberg-rust's REST client: `iceberg-rust-shell URI WAREHOUSE [PROPERTY VALUE]...`.
//!
//! Reads a JSON string a line, a statement, and writes a line for each: an object with rows, or with the error, as
//! tests/engines/shell.py reads it. The catalog is `rest`.

use std::collections::HashMap;
use std::env;
use std::error::Error;
use std::io::{BufRead, stdin};
use std::sync::Arc;

use datafusion::arrow::json::ArrayWriter;
use datafusion::prelude::{SessionConfig, SessionContext};
use iceberg::{Catalog, CatalogBuilder, NamespaceIdent};
use iceberg_catalog_rest::RestCatalogBuilder;
use iceberg_datafusion::IcebergCatalogProvider;
use iceberg_storage_opendal::OpenDalResolvingStorageFactory;
use serde_json::{Map, Value, json};

type Outcome<T> = Result<T, Box<dyn Error>>;

#[tokio::main]
async fn main() -> Outcome<()> {
    let catalog = connected(&env::args().skip(1).collect::<Vec<_>>()).await?;
    for line in stdin().lock().lines() {
        let statement: String = serde_json::from_str(&line?)?;
        let outcome = match run(&catalog, &statement).await {
            Ok(rows) => json!({"rows": rows}),
            Err(error) => json!({"error": error.to_string()}),
        };
        println!("{outcome}");
    }
    Ok(())
}

async fn connected(arguments: &[String]) -> Outcome<Arc<dyn Catalog>> {
    let mut properties: HashMap<String, String> =
        arguments[2..].chunks(2).map(|pair| (pair[0].clone(), pair[1].clone())).collect();
    properties.insert("uri".into(), arguments[0].clone());
    properties.insert("warehouse".into(), arguments[1].clone());
    let builder = RestCatalogBuilder::default().with_storage_factory(Arc::new(OpenDalResolvingStorageFactory::new()));
    Ok(Arc::new(builder.load("rest", properties).await?))
}

/// Runs a statement on the tables that there are now: the provider lists them once, when it is made.
async fn run(catalog: &Arc<dyn Catalog>, statement: &str) -> Outcome<Vec<Value>> {
    // DataFusion gives no schema to a catalog of Iceberg's: the client makes it.
    if let Some(name) = statement.strip_prefix("CREATE SCHEMA rest.") {
        catalog.create_namespace(&NamespaceIdent::new(name.into()), HashMap::new()).await?;
        return Ok(Vec::new());
    }
    let context = SessionContext::new_with_config(SessionConfig::new().with_target_partitions(1));
    context.register_catalog("rest", Arc::new(IcebergCatalogProvider::try_new(catalog.clone()).await?));
    let frame = context.sql(statement).await?;
    let columns: Vec<String> = frame.schema().fields().iter().map(|field| field.name().clone()).collect();
    let mut writer = ArrayWriter::new(Vec::new());
    writer.write_batches(&frame.collect().await?.iter().collect::<Vec<_>>())?;
    writer.finish()?;
    let written = writer.into_inner();
    // Nothing was written if there was no batch at all.
    let rows: Vec<Map<String, Value>> = if written.is_empty() { Vec::new() } else { serde_json::from_slice(&written)? };
    Ok(rows.iter().map(|row| cells(row, &columns)).collect())
}

/// The cells of a row, in the order of the columns. A cell without a value is left out of a row of `ArrayWriter`'s.
fn cells(row: &Map<String, Value>, columns: &[String]) -> Value {
    columns.iter().map(|name| row.get(name).cloned().unwrap_or(Value::Null)).collect()
}
