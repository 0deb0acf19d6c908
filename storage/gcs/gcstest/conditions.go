package gcstest

import (
	"strconv"
)

// conditions are the preconditions of a request. A field is nil when it was not
// set. Generation 0 stands for "no object".
type conditions struct {
	generation, notGeneration         *int64
	metageneration, notMetageneration *int64
}

// conditions reads them from the query; prefix is "if" or "ifSource".
func (c *call) conditions(prefix string) (conditions, error) {
	var out conditions
	for _, p := range []struct {
		name string
		to   **int64
	}{
		{prefix + "GenerationMatch", &out.generation},
		{prefix + "GenerationNotMatch", &out.notGeneration},
		{prefix + "MetagenerationMatch", &out.metageneration},
		{prefix + "MetagenerationNotMatch", &out.notMetageneration},
	} {
		if !c.has(p.name) {
			continue
		}
		n, err := strconv.ParseInt(c.get(p.name), 10, 64)
		if err != nil || n < 0 {
			return out, invalid("Invalid value for %s.", p.name)
		}
		*p.to = &n
	}
	return out, nil
}

// check holds the conditions against the live object, nil when there is none.
// Notmatch conditions that fail give 304 when the request only reads.
func (p conditions) check(o *object, reads bool) error {
	var gen, metagen int64
	if o != nil {
		gen, metagen = o.generation, o.metagen
	}
	switch {
	case p.generation != nil && *p.generation != gen, p.metageneration != nil && *p.metageneration != metagen:
		return errCondition
	case p.notGeneration != nil && *p.notGeneration == gen, p.notMetageneration != nil && *p.notMetageneration == metagen:
		if reads {
			return errSame
		}
		return errCondition
	}
	return nil
}

// wanted gives the generation that the request names, -1 for the live one.
func (c *call) wanted() (int64, error) {
	if !c.has("generation") {
		return -1, nil
	}
	n, err := strconv.ParseInt(c.get("generation"), 10, 64)
	if err != nil {
		return 0, invalid("Invalid value for generation.")
	}
	return n, nil
}
