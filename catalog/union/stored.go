package union

import "hbackup"

// Stored gives what a location stores for the images of all these unions, which are
// those of all of its tables: each file once, also one that images of several tables
// name.
func Stored(unions []*Union) (Totals, error) {
	var sum Totals
	concerned := map[hbackup.TableName]bool{}
	for _, u := range unions {
		for _, t := range u.head.Foreign {
			concerned[t], concerned[u.Table()] = true, true
		}
	}
	w := &writer{}
	var sources []*source
	images := 0
	for _, u := range unions {
		if !concerned[u.Table()] {
			sum.add(u.Totals())
			continue
		}
		// Numbers of images must not meet those of another union.
		sources = append(sources, newSource(u.blocks(0), shifted(len(u.head.Images), images)))
		images += len(u.head.Images)
	}
	err := merge(sources, func(e *Entry) error {
		w.count(e)
		return nil
	})
	sum.add(w.head.Totals)
	return sum, err
}

func (t *Totals) add(o Totals) {
	t.Files += o.Files
	t.Bytes += o.Bytes
	t.SharedFiles += o.SharedFiles
	t.SharedBytes += o.SharedBytes
}

// shifted gives images numbers behind those of other unions.
func shifted(images, before int) renumber {
	r := make(renumber, images)
	for i := range r {
		r[i] = int32(before + i)
	}
	return r
}
