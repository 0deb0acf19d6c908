package gcs

import (
	"encoding/json"
	"errors"
	"net/http"
	"slices"
	"strings"

	"google.golang.org/api/googleapi"
)

// answerOf gives the answer of the service that is in an error, nil if there is
// none. The library does not read the answers to downloads; that is made up for.
func answerOf(err error) *googleapi.Error {
	var api *googleapi.Error
	if !errors.As(err, &api) {
		return nil
	}
	if api.Message != "" || api.Body == "" {
		return api
	}
	full := *api
	full.Message, full.Errors = parseAnswer(api.Body)
	return &full
}

// parseAnswer reads the service's JSON for an error. Of any other text it gives
// nothing.
func parseAnswer(body string) (message string, items []googleapi.ErrorItem) {
	var in struct {
		Error struct {
			Message string
			Errors  []googleapi.ErrorItem
		}
	}
	if err := json.Unmarshal([]byte(body), &in); err != nil {
		return "", nil
	}
	return in.Error.Message, in.Error.Errors
}

// wordsOf gives the service's message on one line, not too long: of an answer
// that is none of the service's it may be a page of HTML.
func wordsOf(api *googleapi.Error) string {
	m := api.Message
	if m == "" {
		m = api.Body
	}
	m = strings.Join(strings.Fields(m), " ")
	if strings.HasPrefix(m, "<") {
		return ""
	}
	const most = 300
	if len(m) > most {
		m = m[:most] + "…"
	}
	return strings.Map(printable, strings.ToValidUTF8(m, "?"))
}

// printable replaces characters that would move a terminal's cursor.
func printable(r rune) rune {
	if r < 0x20 || r >= 0x7f && r < 0xa0 {
		return '?'
	}
	return r
}

func reasonOf(api *googleapi.Error, reasons ...string) bool {
	return slices.ContainsFunc(api.Errors, func(item googleapi.ErrorItem) bool {
		return slices.Contains(reasons, item.Reason)
	})
}

// statusOf gives the HTTP status of the answer, 0 if there was none.
func statusOf(err error) int {
	if api := answerOf(err); api != nil {
		return api.Code
	}
	return 0
}

// isMissing reports an answer that says that there is no such object, or perhaps
// no such bucket.
func isMissing(err error) bool { return statusOf(err) == http.StatusNotFound }

func bucketMissing(api *googleapi.Error) bool {
	return strings.Contains(api.Message+api.Body, "bucket does not exist")
}

// isDamage reports an answer that says that the bytes are not those of the
// checksum that came with them.
func isDamage(err error) bool {
	api := answerOf(err)
	return api != nil && api.Code == http.StatusBadRequest &&
		(strings.Contains(api.Message+api.Body, "doesn't match calculated") || reasonOf(api, "BadDigest"))
}
