package main

import (
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"strings"

	"hbackup/e2e/servers"
)

const (
	table    = "shop:orders"
	restored = "shop:orders_restored"
)

// play is the demo itself.
func (s *stage) play() error {
	say("1. A table %s with orders, three families, four regions, several versions and deletes.", table)
	if err := s.fill(); err != nil {
		return err
	}
	raw, err := s.prod.Dump(s.ctx, table, true)
	if err != nil {
		return err
	}
	before, err := s.prod.Dump(s.ctx, table, false)
	if err != nil {
		return err
	}
	fmt.Printf("    it shows %d cells; with old versions and %d delete markers there are %d\n", before.Cells, raw.Markers, raw.Cells)

	say("2. Back it up to S3.")
	if _, err := s.run("backup", "--cluster", "prod", "--tables", table, "--request-id", "demo"); err != nil {
		return err
	}
	if _, err := s.run("list", "--cluster", "prod"); err != nil {
		return err
	}
	id, err := s.backupID()
	if err != nil {
		return err
	}
	if _, err := s.run("verify", id); err != nil {
		return err
	}

	say("3. Now the accident: somebody changes the orders, then truncates the table.")
	if err := s.spoil(); err != nil {
		return err
	}

	say("4. Restore the backup as a new table beside it, and compare every cell.")
	if _, err := s.run("restore", id, "--table", table, "--as", restored); err != nil {
		return err
	}
	if err := s.compare("prod", s.prod, before, raw); err != nil {
		return err
	}

	say("5. Restore it to another, empty cluster as well.")
	if _, err := s.run("restore", id, "--table", table, "--as", restored, "--from-cluster", "prod", "--to-cluster", "other", "--create-namespace"); err != nil {
		return err
	}
	return s.compare("other", s.other, before, raw)
}

func (s *stage) fill() error {
	err := s.prod.CreateTable(s.ctx, servers.TableSpec{Name: table, SplitKeys: [][]byte{[]byte("customer-0250"), []byte("customer-0500"), []byte("customer-0750")},
		Families: []servers.FamilySpec{
			{Name: "order", Versions: 3, Attributes: map[string]string{"COMPRESSION": "GZ", "DATA_BLOCK_ENCODING": "FAST_DIFF"}},
			{Name: "address", Attributes: map[string]string{"BLOOMFILTER": "ROWCOL"}},
			{Name: "scan"},
		}})
	if err != nil {
		return err
	}
	rng := rand.New(rand.NewPCG(1, 2))
	items := []string{"kettle", "lamp", "desk", "chair", "notebook", "bicycle bell", "umbrella", "teapot"}
	cities := []string{"Lisbon", "Oslo", "Ghent", "Turin", "Graz", "Porto", "Cork", "Malmö"}
	states := []string{"placed", "paid", "sent", "delivered"}
	var cells []servers.CellSpec
	for n := range 1500 {
		row := fmt.Appendf(nil, "customer-%04d/order-%05d", rng.IntN(1000), n)
		put := func(family, qualifier, value string) {
			cells = append(cells, servers.CellSpec{Row: row, Family: family, Qualifier: []byte(qualifier), Value: []byte(value)})
		}
		put("order", "item", items[rng.IntN(len(items))])
		put("order", "price", fmt.Sprintf("%d.%02d EUR", 5+rng.IntN(400), rng.IntN(100)))
		for _, state := range states[:1+rng.IntN(len(states))] {
			put("order", "state", state)
		}
		put("address", "city", cities[rng.IntN(len(cities))])
	}
	if err := s.prod.Put(s.ctx, table, cells...); err != nil {
		return err
	}
	if err := s.prod.Flush(s.ctx, table); err != nil {
		return err
	}
	_, err = s.prod.Load(s.ctx, table, servers.LoadSpec{Seed: 7, Rows: 4000, Prefix: "customer-", Families: []string{"scan"}, ValueBytes: 4096, DeletePercent: 5, TagPercent: 5})
	if err != nil {
		return err
	}
	// A flush leaves out what a delete marker beside it hides. A backup flushes
	// too, so the cells are counted after one.
	return s.prod.Flush(s.ctx, table)
}

func (s *stage) spoil() error {
	if err := s.prod.Put(s.ctx, table, servers.CellSpec{Row: []byte("customer-0001/order-99999"), Family: "order", Qualifier: []byte("price"), Value: []byte("0.00 EUR")}); err != nil {
		return err
	}
	if err := s.prod.Truncate(s.ctx, table, true); err != nil {
		return err
	}
	now, err := s.prod.Dump(s.ctx, table, false)
	if err == nil {
		fmt.Printf("    the table shows %d cells now\n", now.Cells)
	}
	return err
}

func (s *stage) compare(name string, c *servers.Cluster, before, raw servers.Dump) error {
	for _, want := range []struct {
		what string
		dump servers.Dump
		raw  bool
	}{{"visible cells", before, false}, {"cells with versions, markers and tags", raw, true}} {
		got, err := c.Dump(s.ctx, restored, want.raw)
		if err != nil {
			return err
		}
		if err := servers.DiffDumps(want.dump, got); err != nil {
			return fmt.Errorf("the restored table on %s is not what it was: %w", name, err)
		}
		fmt.Printf("    %s on %s: all %d %s are equal (SHA-256 %.16s…)\n", restored, name, got.Cells, want.what, got.Digest)
	}
	return nil
}

// backupID asks for the newest backup as a program would.
func (s *stage) backupID() (string, error) {
	out, err := s.quiet("list", "--cluster", "prod", "-o", "json")
	if err != nil {
		return "", err
	}
	var doc struct {
		Backups []struct {
			ID string `json:"backup"`
		} `json:"backups"`
	}
	if err := json.Unmarshal([]byte(out), &doc); err != nil {
		return "", fmt.Errorf("hbackup list -o json: %w", err)
	}
	if len(doc.Backups) == 0 {
		return "", fmt.Errorf("hbackup list shows no backup")
	}
	return doc.Backups[len(doc.Backups)-1].ID, nil
}

// invite prints what to try next.
func (s *stage) invite() {
	fmt.Printf(`
The servers stay up until you press Ctrl-C. In another terminal:

    export HBACKUP_CONFIG=%s
    %s list
    %s describe ID
    %s check
    %s backup --cluster prod --tables %s
    %s restore ID --table %s --as shop:another

The bucket's objects lie under %s as plain files.
HBase's own client can be called with curl, for example:

    curl -d '{"table":"%s"}' http://%s/regions
`, s.config, s.hbackup, s.hbackup, s.hbackup, s.hbackup, restored, s.hbackup, table, s.s3.BucketDir(bucket), restored, strings.TrimPrefix(s.prod.Driver(), "http://"))
}
