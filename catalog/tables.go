package catalog

import (
	"context"
	"slices"
	"strings"

	"hbackup"
	"hbackup/storage"
)

// TablesWithImages lists the tables of which there is an image, or was one, in the
// order of their names.
func TablesWithImages(ctx context.Context, s storage.Store) ([]hbackup.TableName, error) {
	var tables []hbackup.TableName
	namespaces, err := folders(ctx, s, imagesPrefix)
	if err != nil {
		return nil, err
	}
	for _, ns := range namespaces {
		qualifiers, err := folders(ctx, s, imagesPrefix+ns+"/")
		if err != nil {
			return nil, err
		}
		for _, q := range qualifiers {
			if t := (hbackup.TableName{Namespace: ns, Qualifier: q}); t.Validate() == nil {
				tables = append(tables, t)
			}
		}
	}
	slices.SortFunc(tables, hbackup.TableName.Compare)
	return tables, nil
}

// folders lists the names of the folders under a prefix.
func folders(ctx context.Context, s storage.Store, prefix string) ([]string, error) {
	var names []string
	for o, err := range s.List(ctx, prefix, storage.ListOptions{Folders: true, NamesOnly: true}) {
		if err != nil {
			return nil, hbackup.E("list images in", string(s.Location()), hbackup.KindOther, err)
		}
		if name, ok := strings.CutSuffix(strings.TrimPrefix(string(o.Key), prefix), "/"); ok {
			names = append(names, name)
		}
	}
	return names, nil
}
