package gcstest

import (
	"encoding/json"
	"encoding/xml"
	"errors"
	"fmt"
	"net/http"
)

// failure is an answer that says no.
type failure struct {
	status  int
	reason  string // the JSON API's word, or the XML API's code
	message string
}

func (f failure) Error() string { return fmt.Sprintf("%d %s: %s", f.status, f.reason, f.message) }

func invalid(format string, args ...any) error {
	return failure{http.StatusBadRequest, "invalid", fmt.Sprintf(format, args...)}
}

func notFound(message string) error { return failure{http.StatusNotFound, "notFound", message} }

var (
	errCondition = failure{http.StatusPreconditionFailed, "conditionNotMet", "At least one of the pre-conditions you specified did not hold."}
	errSame      = failure{http.StatusNotModified, "notModified", ""}
	errCancelled = failure{499, "clientClosedRequest", "The upload was cancelled."}
	errGone      = failure{http.StatusGone, "gone", "The upload session has failed; start over."}
	errMethod    = failure{http.StatusMethodNotAllowed, "methodNotAllowed", "Method not allowed."}
)

// fail answers with an error.
func (c *call) fail(err error) {
	var f failure
	if !errors.As(err, &f) {
		f = failure{http.StatusInternalServerError, "backendError", err.Error()}
	}
	switch {
	case f.status == http.StatusNotModified:
		c.w.WriteHeader(f.status)
	case c.xml:
		c.w.Header().Set("Content-Type", "application/xml; charset=UTF-8")
		c.w.WriteHeader(f.status)
		xml.NewEncoder(c.w).Encode(struct {
			XMLName struct{} `xml:"Error"`
			Code    string
			Message string
		}{Code: f.reason, Message: f.message})
	default:
		c.json(f.status, map[string]any{"error": map[string]any{
			"code": f.status, "message": f.message,
			"errors": []any{map[string]any{"message": f.message, "domain": "global", "reason": f.reason}},
		}})
	}
}

// json answers with a value.
func (c *call) json(status int, v any) {
	c.w.Header().Set("Content-Type", "application/json; charset=UTF-8")
	c.w.WriteHeader(status)
	json.NewEncoder(c.w).Encode(v) // a client that went away gets nothing
}
