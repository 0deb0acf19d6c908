package servers

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"

	"hbackup"
)

// DriverError is what HBase's own client threw.
type DriverError struct {
	Verb    string
	Class   string `json:"class"` // the Java exception
	Message string `json:"message"`
	Trace   string `json:"trace"` // for a log
}

// Error gives the exception's class and message.
func (e *DriverError) Error() string { return e.Class + ": " + e.Message }

// call has HBase's own client do something. result may be nil.
func (h *HBase) call(ctx context.Context, verb string, args, result any) error {
	body, err := json.Marshal(args)
	if err != nil {
		return err
	}
	request, err := http.NewRequestWithContext(ctx, http.MethodPost, "http://"+h.Driver()+"/"+verb, bytes.NewReader(body))
	if err != nil {
		return err
	}
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		if !h.process.alive() {
			return h.process.failure(verb)
		}
		return hbackup.E(verb, h.String(), hbackup.KindUnavailable, err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		return hbackup.E(verb, h.String(), hbackup.KindUnavailable, err)
	}
	if response.StatusCode != http.StatusOK {
		e := &DriverError{Verb: verb}
		if err := json.Unmarshal(text, e); err != nil {
			return hbackup.Errorf(verb, h.String(), hbackup.KindOther, "%s: %s", response.Status, text)
		}
		return hbackup.E(verb, h.String(), hbackup.KindOther, e).WithHint("the servers' log is %s", h.LogFile())
	}
	if result == nil {
		return nil
	}
	if err := json.Unmarshal(text, result); err != nil {
		return fmt.Errorf("read the answer of %s: %w", verb, err)
	}
	return nil
}

// args are the arguments of a call by name.
type args map[string]any
