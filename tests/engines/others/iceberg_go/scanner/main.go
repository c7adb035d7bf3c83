// Reads an Iceberg table by iceberg-go: `iceberg-go-scanner URI WAREHOUSE NAMESPACE TABLE`, with the properties of the
// catalog as JSON in ICEBERG_PROPERTIES, if it is set. Of these `credential`, `scope` and `oauth2-server-uri` are a login.
//
// Reads a JSON string a line: who plans the scan, `local` or `remote`, and the name of a filter. Writes a line for each: an
// object with the rows, whose cells are text, or with the error, as tests/engines/shell.py reads it.
package main

import (
	"context"
	"encoding/json"
	"fmt"
	"net/url"
	"os"
	"strings"

	"appender/lines"

	"github.com/apache/arrow-go/v18/arrow/array"
	"github.com/apache/iceberg-go"
	"github.com/apache/iceberg-go/catalog/rest"
	_ "github.com/apache/iceberg-go/io/gocloud/s3"
	"github.com/apache/iceberg-go/table"
)

var (
	id      = iceberg.Reference("id")
	name    = iceberg.Reference("name")
	filters = map[string]iceberg.BooleanExpression{
		"all":     iceberg.AlwaysTrue{},
		"above":   iceberg.GreaterThan(id, int64(15)),
		"null":    iceberg.IsNull(name),
		"some":    iceberg.IsIn(id, int64(3), int64(5), int64(7)),
		"neither": iceberg.NewNot(iceberg.NewOr(iceberg.LessThan(id, int64(40)), iceberg.EqualTo(name, "n45"))),
		"none":    iceberg.GreaterThan(id, int64(1000)),
	}
)

func main() {
	ctx := context.Background()
	options, err := options(os.Args[2], os.Getenv("ICEBERG_PROPERTIES"))
	if err != nil {
		lines.Fail(err)
	}
	catalog, err := rest.NewCatalog(ctx, "arco", os.Args[1], options...)
	if err != nil {
		lines.Fail(err)
	}
	loaded, err := catalog.LoadTable(ctx, table.Identifier(os.Args[3:]))
	if err != nil {
		lines.Fail(err)
	}
	lines.Answer(func(statement string) (any, error) {
		return scan(ctx, loaded, statement)
	})
}

func options(warehouse string, document string) ([]rest.Option, error) {
	found := []rest.Option{rest.WithWarehouseLocation(warehouse)}
	if document == "" {
		return found, nil
	}
	properties := iceberg.Properties{}
	if err := json.Unmarshal([]byte(document), &properties); err != nil {
		return nil, err
	}
	if credential, known := properties["credential"]; known {
		address, err := url.Parse(properties["oauth2-server-uri"])
		if err != nil {
			return nil, err
		}
		login := []rest.Option{rest.WithCredential(credential), rest.WithScope(properties["scope"]), rest.WithAuthURI(address)}
		found = append(found, login...)
	}
	return append(found, rest.WithAdditionalProps(properties)), nil
}

func scan(ctx context.Context, loaded *table.Table, statement string) ([][]string, error) {
	mode, named, _ := strings.Cut(statement, " ")
	filter, known := filters[named]
	if !known {
		return nil, fmt.Errorf("no filter %q", named)
	}
	planning := table.WithScanPlanningMode(table.ScanPlanningMode(mode))
	found, err := loaded.Scan(table.WithRowFilter(filter), planning).ToArrowTable(ctx)
	if err != nil {
		return nil, err
	}
	defer found.Release()
	batches := array.NewTableReader(found, -1)
	defer batches.Release()
	rows := [][]string{}
	for batches.Next() {
		batch := batches.RecordBatch()
		for row := range int(batch.NumRows()) {
			cells := []string{}
			for _, column := range batch.Columns() {
				cells = append(cells, column.ValueStr(row))
			}
			rows = append(rows, cells)
		}
	}
	return rows, batches.Err()
}
