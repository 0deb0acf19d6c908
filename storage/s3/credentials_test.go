package s3

import (
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"hbackup"
	"hbackup/storage"
)

// keyService hands out temporary keys: the role service of AWS, the one that
// containers ask, and that of a machine. The n-th key is AKIDn with the token
// token-n.
type keyService struct {
	*httptest.Server
	life time.Duration // of a key

	mu     sync.Mutex
	issued int
	asked  []string // what for, with what
}

func newKeyService(t *testing.T) *keyService {
	k := &keyService{life: time.Hour}
	k.Server = httptest.NewServer(k)
	t.Cleanup(k.Close)
	return k
}

func (k *keyService) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	r.ParseForm()
	if r.Method == "PUT" { // a machine's service wants a session first
		w.Header().Set("X-Aws-Ec2-Metadata-Token-Ttl-Seconds", "600")
		io.WriteString(w, "session")
		return
	}
	if strings.HasSuffix(r.URL.Path, "/security-credentials/") {
		io.WriteString(w, "the-role")
		return
	}
	k.mu.Lock()
	defer k.mu.Unlock()
	k.issued++
	k.asked = append(k.asked, r.URL.Path+" "+r.Form.Encode()+" "+r.Header.Get("Authorization"))
	id, secret, token := fmt.Sprint("AKID", k.issued), fmt.Sprint("secret-", k.issued), fmt.Sprint("token-", k.issued)
	until := time.Now().Add(k.life).UTC().Format(time.RFC3339)
	if action := r.Form.Get("Action"); action != "" {
		fmt.Fprintf(w, `<%[1]sResponse xmlns="https://sts.amazonaws.com/doc/2011-06-15/"><%[1]sResult><Credentials><AccessKeyId>%[2]s</AccessKeyId>`+
			`<SecretAccessKey>%[3]s</SecretAccessKey><SessionToken>%[4]s</SessionToken><Expiration>%[5]s</Expiration></Credentials></%[1]sResult></%[1]sResponse>`,
			action, id, secret, token, until)
		return
	}
	fmt.Fprintf(w, `{"Code":"Success","AccessKeyId":%q,"SecretAccessKey":%q,"Token":%q,"Expiration":%q}`, id, secret, token, until)
}

// sources are all the places that a key may come from. Each sets them up so that
// the first key is AKID1, or one with a fixed name.
var sources = []struct {
	name    string
	id      string // of the first key
	renewed bool   // there is another one when it has expired
	asked   string // in what the service hears
	set     func(t *testing.T, k *keyService, c *Credentials)
}{
	{"environment", "AKIDENV", false, "", func(t *testing.T, k *keyService, c *Credentials) {
		t.Setenv("AWS_ACCESS_KEY_ID", "AKIDENV")
		t.Setenv("AWS_SECRET_ACCESS_KEY", "x")
	}},
	{"shared file", "AKIDFILE", false, "", func(t *testing.T, k *keyService, c *Credentials) {
		t.Setenv("AWS_SHARED_CREDENTIALS_FILE", fileWith(t, "[default]\naws_access_key_id = AKIDFILE\naws_secret_access_key = x\n"))
	}},
	{"profile", "AKIDPROFILE", false, "", func(t *testing.T, k *keyService, c *Credentials) {
		t.Setenv("AWS_SHARED_CREDENTIALS_FILE", fileWith(t, "[default]\naws_access_key_id = no\naws_secret_access_key = no\n[backup]\naws_access_key_id = AKIDPROFILE\naws_secret_access_key = x\n"))
		c.Profile = "backup"
	}},
	{"process of a profile", "AKIDPROCESS", false, "", func(t *testing.T, k *keyService, c *Credentials) {
		answer := fileWith(t, `{"Version":1,"AccessKeyId":"AKIDPROCESS","SecretAccessKey":"x"}`)
		t.Setenv("AWS_CONFIG_FILE", fileWith(t, "[profile backup]\ncredential_process = cat "+answer+"\n"))
		c.Profile = "backup"
	}},
	{"references", "AKIDREF", false, "", func(t *testing.T, k *keyService, c *Credentials) {
		t.Setenv("S3_TEST_SOME_SECRET", "x")
		c.AccessKey, c.SecretKey = "file:"+fileWith(t, "AKIDREF\n"), "env:S3_TEST_SOME_SECRET"
	}},
	{"role", "AKID1", true, "ExternalId=outside&RoleArn=arn%3Aaws%3Aiam%3A%3A1%3Arole%2Fbackup&RoleSessionName=nightly", func(t *testing.T, k *keyService, c *Credentials) {
		t.Setenv("S3_TEST_SOME_SECRET", "x")
		c.AccessKey, c.SecretKey = "env:S3_TEST_ACCESS", "env:S3_TEST_SOME_SECRET"
		c.RoleARN, c.ExternalID, c.SessionName, c.STSEndpoint = "arn:aws:iam::1:role/backup", "outside", "nightly", k.URL
	}},
	{"role by web identity", "AKID1", true, "WebIdentityToken=who-we-are", func(t *testing.T, k *keyService, c *Credentials) {
		c.RoleARN, c.TokenFile, c.STSEndpoint = "arn:aws:iam::1:role/backup", fileWith(t, "who-we-are"), k.URL
	}},
	{"web identity of the environment", "AKID1", true, "WebIdentityToken=who-we-are", func(t *testing.T, k *keyService, c *Credentials) {
		t.Setenv("AWS_ROLE_ARN", "arn:aws:iam::1:role/backup")
		t.Setenv("AWS_WEB_IDENTITY_TOKEN_FILE", fileWith(t, "who-we-are"))
		t.Setenv("AWS_ENDPOINT_URL_STS", k.URL)
	}},
	{"container", "AKID1", true, "/container ", func(t *testing.T, k *keyService, c *Credentials) {
		t.Setenv("AWS_CONTAINER_CREDENTIALS_FULL_URI", k.URL+"/container")
	}},
	{"instance", "AKID1", true, "/security-credentials/the-role", func(t *testing.T, k *keyService, c *Credentials) {
		t.Setenv("AWS_EC2_METADATA_DISABLED", "false")
		t.Setenv("AWS_EC2_METADATA_SERVICE_ENDPOINT", k.URL)
	}},
}

func fileWith(t *testing.T, text string) string {
	path := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

// TestSourcesOfKeys takes a key from each place, and has it expire between two
// parts of an upload: what is sent goes on with the next key, and no part that is
// stored is sent again.
func TestSourcesOfKeys(t *testing.T) {
	for _, tc := range sources {
		t.Run(tc.name, func(t *testing.T) {
			k := newKeyService(t)
			f, c := newFake(t, false)
			c.Credentials, c.Parallel, c.MaxAttempts = Credentials{}, 1, 2
			tc.set(t, k, &c.Credentials)
			var used []string
			f.refuse = func(op string, w http.ResponseWriter, r *http.Request) bool {
				id, _, _ := strings.Cut(strings.TrimPrefix(r.Header.Get("Authorization"), "AWS4-HMAC-SHA256 Credential="), "/")
				if len(used) == 0 || used[len(used)-1] != id {
					used = append(used, id)
				}
				// The first key is good for the opening of the upload and its first part.
				return id == tc.id && op == "UploadPart" && r.URL.Query().Get("partNumber") == "2" && refuse(w, r, 400, "ExpiredToken")
			}
			_, err := open(t, c).Put(t.Context(), "a/key", io.LimitReader(zeros{}, 2*minPartSize), storage.PutOptions{Size: 2 * minPartSize})
			if used[0] != tc.id {
				t.Errorf("signed with %v; want %s", used, tc.id)
			}
			if !strings.Contains(strings.Join(k.asked, "\n"), tc.asked) {
				t.Errorf("the service was asked for %q", k.asked)
			}
			if !tc.renewed {
				checkKind(t, err, hbackup.KindDenied, true)
				return
			}
			if err != nil || len(used) != 2 || used[1] != "AKID2" || f.count("UploadPart") != 3 {
				t.Errorf("signed with %v, %d parts sent: %v", used, f.count("UploadPart"), err)
			}
		})
	}
}

// TestKeyIsRenewedInTime has keys that are about to end: a new one is got before
// the store has to refuse the old one.
func TestKeyIsRenewedInTime(t *testing.T) {
	k := newKeyService(t)
	k.life = expiryWindow - time.Second
	f, c := newFake(t, false)
	t.Setenv("S3_TEST_SOME_SECRET", "x")
	c.Credentials = Credentials{RoleARN: "arn:aws:iam::1:role/backup", TokenFile: fileWith(t, "who-we-are"), STSEndpoint: k.URL}
	s := open(t, c)
	for range 3 {
		if err := putBytes(t, s, "a/key", bytesFor(10), false); err != nil {
			t.Fatal(err)
		}
	}
	if k.issued != 3 || f.count("PutObject") != 3 {
		t.Errorf("%d keys for %d puts", k.issued, f.count("PutObject"))
	}
}

func TestCredentialsRefused(t *testing.T) {
	for name, c := range map[string]Credentials{
		"endpoint without a role":      {STSEndpoint: "https://x"},
		"token without a role":         {TokenFile: "/x"},
		"token and key":                {RoleARN: "r", TokenFile: "/x", AccessKey: "env:A", SecretKey: "env:B"},
		"profile and key":              {Profile: "p", AccessKey: "env:A", SecretKey: "env:B"},
		"endpoint that is none":        {RoleARN: "r", STSEndpoint: "sts.example.org"},
		"endpoint with a password":     {RoleARN: "r", STSEndpoint: "https://u:hunter2@x"},
		"web identity and external id": {RoleARN: "r", TokenFile: "/x", ExternalID: "e"},
	} {
		full := configFor(t, gateway)
		full.Credentials = c
		_, err := New(t.Context(), full)
		if !hbackup.IsKind(err, hbackup.KindUsage) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
