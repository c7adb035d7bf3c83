// Appends rows to an Iceberg table by iceberg-go: `iceberg-go-appender URI WAREHOUSE NAMESPACE TABLE`.
//
// Reads a JSON string a line, the id of a row, and appends that row with a request to rebase. Writes a line for each: an
// object with no rows, or with the error, as tests/engines/shell.py reads it.
package main

import (
	"context"
	"os"
	"strconv"

	"appender/lines"

	"github.com/apache/arrow-go/v18/arrow"
	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/arrow-go/v18/arrow/memory"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog/rest"
	"github.com/apache/iceberg-go/table"
)

var schema = arrow.NewSchema([]arrow.Field{
	{Name: "id", Type: arrow.PrimitiveTypes.Int64, Nullable: true},
	{Name: "engine", Type: arrow.BinaryTypes.String, Nullable: true},
}, nil)

func main() {
	ctx, name := context.Background(), table.Identifier(os.Args[3:])
	catalog, err := rest.NewCatalog(ctx, "arco", os.Args[1], rest.WithWarehouseLocation(os.Args[2]))
	if err != nil {
		lines.Fail(err)
	}
	lines.Answer(func(statement string) (any, error) {
		id, err := strconv.ParseInt(statement, 10, 64)
		if err != nil {
			return nil, err
		}
		return []any{}, appendRow(ctx, catalog, name, id)
	})
}

func appendRow(ctx context.Context, catalog *rest.Catalog, name table.Identifier, id int64) error {
	loaded, err := catalog.LoadTable(ctx, name)
	if err != nil {
		return err
	}
	builder := array.NewRecordBuilder(memory.DefaultAllocator, schema)
	defer builder.Release()
	builder.Field(0).(*array.Int64Builder).Append(id)
	builder.Field(1).(*array.StringBuilder).Append("iceberg-go")
	rows := builder.NewRecordBatch()
	defer rows.Release()
	reader, err := array.NewRecordReader(schema, []arrow.RecordBatch{rows})
	if err != nil {
		return err
	}
	defer reader.Release()
	_, err = loaded.Append(ctx, reader, iceberg.Properties{"arco.append": "rebase"})
	return err
}
