package rpc

import (
	"context"
	"maps"
	"slices"
	"strings"

	"hbackup"
	"hbackup/hbase/hbpb"
)

// Namespace is a name space and its configuration (quotas among it).
type Namespace struct {
	Name   string
	Config map[string]string
}

// Namespaces lists all name spaces, HBase's own included, by name.
func (c *Client) Namespaces(ctx context.Context) ([]Namespace, error) {
	found, err := c.listNamespaces(ctx, callOptions{})
	return found, c.fail("list name spaces", "", err)
}

func (c *Client) listNamespaces(ctx context.Context, o callOptions) ([]Namespace, error) {
	var resp hbpb.ListNamespaceDescriptorsResponse
	if err := c.callMaster(ctx, "ListNamespaceDescriptors", &hbpb.ListNamespaceDescriptorsRequest{}, &resp, o); err != nil {
		return nil, err
	}
	out := make([]Namespace, 0, len(resp.NamespaceDescriptor))
	for _, d := range resp.NamespaceDescriptor {
		ns := Namespace{Name: string(d.Name), Config: map[string]string{}}
		for _, p := range d.Configuration {
			ns.Config[p.GetName()] = p.GetValue()
		}
		out = append(out, ns)
	}
	slices.SortFunc(out, func(a, b Namespace) int { return strings.Compare(a.Name, b.Name) })
	return out, nil
}

// CreateNamespace makes a name space and waits until it is there. Errors:
// KindExists. Do not call it for a name space that exists while regions hang:
// that blocks a handler of the master; look with Namespaces first.
func (c *Client) CreateNamespace(ctx context.Context, name string, config map[string]string, nonce Nonce) error {
	const op = "create name space"
	if err := checkNamespace(op, name); err != nil {
		return err
	}
	d := &hbpb.NamespaceDescriptor{Name: []byte(name)}
	for _, k := range slices.Sorted(maps.Keys(config)) {
		v := config[k]
		d.Configuration = append(d.Configuration, &hbpb.NameStringPair{Name: &k, Value: &v})
	}
	nonce = nonce.orNew()
	req := &hbpb.CreateNamespaceRequest{NamespaceDescriptor: d, NonceGroup: &nonce.Group, Nonce: &nonce.Value}
	var resp hbpb.CreateNamespaceResponse
	err := c.runProcedure(ctx, "CreateNamespace", req, &resp, func(ctx context.Context) (bool, error) {
		return c.hasNamespace(ctx, name)
	})
	return c.fail(op, name, err)
}

// DeleteNamespace removes an empty name space; one that is not there is no error.
func (c *Client) DeleteNamespace(ctx context.Context, name string, nonce Nonce) error {
	const op = "delete name space"
	if err := checkNamespace(op, name); err != nil {
		return err
	}
	if name == hbackup.DefaultNamespace || name == hbackup.SystemNamespace {
		return hbackup.Errorf(op, name, hbackup.KindRefused, "HBase needs this name space")
	}
	nonce = nonce.orNew()
	req := &hbpb.DeleteNamespaceRequest{NamespaceName: &name, NonceGroup: &nonce.Group, Nonce: &nonce.Value}
	var resp hbpb.DeleteNamespaceResponse
	err := c.runProcedure(ctx, "DeleteNamespace", req, &resp, func(ctx context.Context) (bool, error) {
		there, err := c.hasNamespace(ctx, name)
		return !there, err
	})
	if isRemote(err, "NamespaceNotFoundException") {
		return nil
	}
	return c.fail(op, name, err)
}

func (c *Client) hasNamespace(ctx context.Context, name string) (bool, error) {
	all, err := c.listNamespaces(ctx, callOptions{})
	return slices.ContainsFunc(all, func(n Namespace) bool { return n.Name == name }), err
}
