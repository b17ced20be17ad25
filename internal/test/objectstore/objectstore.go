// Package objectstore is a server for tests that implements as much of the S3 protocol as gocloud.dev/blob needs, and
// simulates failures.
package objectstore

import (
	"crypto/md5" //nolint:gosec // the ETag of S3
	"encoding/xml"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"
)

// Store has objects by path, with the bucket first: /lake/orders/a.csv.
type Store struct {
	URL string

	mu       sync.Mutex
	objects  map[string]stored
	uploads  map[string][]byte // in parts, by path and ID
	faults   Faults
	requests []string
}

type stored struct {
	content []byte
	at      time.Time
	order   int // of its writing
}

// Faults are the failures to simulate. The zero value has none.
type Faults struct {
	// Unlisted is how many of the newest objects are missing from lists.
	Unlisted int
	// Unconditional makes writes ignore If-None-Match.
	Unconditional bool
	// Answer returns the status of a request before it is handled; 0 handles it as usual. CutAfter handles the
	// request and then cuts the connection.
	Answer func(method, path string) int
}

// CutAfter is a return value of Faults.Answer.
const CutAfter = -1

// Start starts a store, which is stopped when the test ends.
func Start(t *testing.T) *Store {
	t.Helper()
	s := &Store{objects: map[string]stored{}, uploads: map[string][]byte{}}
	server := httptest.NewServer(s)
	t.Cleanup(server.Close)
	s.URL = server.URL
	return s
}

// Address returns the URL of a prefix in a bucket, for gocloud.dev/blob.
func (s *Store) Address(prefix string) string {
	return "s3://" + prefix + "?region=eu-central-1&use_path_style=true&anonymous=true&endpoint=" + s.URL
}

// Fail sets the failures to simulate from now on.
func (s *Store) Fail(faults Faults) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.faults = faults
}

// Objects returns the paths of all objects, sorted, and their contents.
func (s *Store) Objects() (paths []string, contents map[string][]byte) {
	s.mu.Lock()
	defer s.mu.Unlock()
	contents = map[string][]byte{}
	for path, object := range s.objects {
		paths, contents[path] = append(paths, path), object.content
	}
	slices.Sort(paths)
	return paths, contents
}

// Put stores an object with a modification time.
func (s *Store) Put(path string, content []byte, at time.Time) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.objects[path] = stored{content, at, len(s.requests)}
}

// Requests returns the requests so far, as method and path.
func (s *Store) Requests() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return slices.Clone(s.requests)
}

// ServeHTTP implements http.Handler.
func (s *Store) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	body, _ := io.ReadAll(r.Body)
	s.mu.Lock()
	defer s.mu.Unlock()
	s.requests = append(s.requests, r.Method+" "+r.URL.Path)
	if s.faults.Answer != nil {
		switch status := s.faults.Answer(r.Method, r.URL.Path); {
		case status == CutAfter:
			s.answerRequest(httptest.NewRecorder(), r, body)
			panic(http.ErrAbortHandler)
		case status != 0:
			w.WriteHeader(status)
			_, _ = io.WriteString(w, fmt.Sprintf("<Error><Code>Refused%d</Code></Error>", status))
			return
		}
	}
	s.answerRequest(w, r, body)
}

func (s *Store) answerRequest(w http.ResponseWriter, r *http.Request, body []byte) {
	object, there := s.objects[r.URL.Path]
	switch {
	case r.URL.Query().Has("uploads"), r.URL.Query().Has("uploadId"):
		s.upload(w, r, body)
	case r.Method == http.MethodPut:
		if there && r.Header.Get("If-None-Match") == "*" && !s.faults.Unconditional {
			w.WriteHeader(http.StatusPreconditionFailed)
			_, _ = io.WriteString(w, "<Error><Code>PreconditionFailed</Code></Error>")
			return
		}
		s.objects[r.URL.Path] = stored{body, time.Now(), len(s.requests)}
		w.Header().Set("ETag", etagOf(body))
	case r.Method == http.MethodDelete:
		delete(s.objects, r.URL.Path)
		w.WriteHeader(http.StatusNoContent)
	case r.URL.Query().Has("list-type"):
		s.listObjects(w, r)
	case !there:
		w.WriteHeader(http.StatusNotFound)
		_, _ = io.WriteString(w, "<Error><Code>NoSuchKey</Code></Error>")
	default:
		w.Header().Set("ETag", etagOf(object.content))
		w.Header().Set("Last-Modified", object.at.UTC().Format(http.TimeFormat))
		http.ServeContent(w, r, "", object.at, strings.NewReader(string(object.content)))
	}
}

// upload answers the requests of an upload in parts.
func (s *Store) upload(w http.ResponseWriter, r *http.Request, body []byte) {
	id, part := r.URL.Query().Get("uploadId"), r.URL.Query().Get("partNumber")
	key := func(part string) string { return fmt.Sprintf("%s?%s#%s", r.URL.Path, id, part) }
	switch {
	case r.Method == http.MethodPut:
		s.uploads[key(part)] = body
		w.Header().Set("ETag", etagOf(body))
	case r.Method == http.MethodPost && id == "":
		_, _ = fmt.Fprintf(w, "<InitiateMultipartUploadResult><UploadId>%d</UploadId></InitiateMultipartUploadResult>", len(s.requests))
	case r.Method == http.MethodPost:
		var whole []byte
		for i := 1; s.uploads[key(strconv.Itoa(i))] != nil; i++ {
			whole = append(whole, s.uploads[key(strconv.Itoa(i))]...)
			delete(s.uploads, key(strconv.Itoa(i)))
		}
		s.objects[r.URL.Path] = stored{whole, time.Now(), len(s.requests)}
		_, _ = fmt.Fprintf(w, "<CompleteMultipartUploadResult><ETag>%s</ETag></CompleteMultipartUploadResult>", etagOf(whole))
	default:
		w.WriteHeader(http.StatusNoContent)
	}
}

func etagOf(content []byte) string {
	return fmt.Sprintf(`"%x"`, md5.Sum(content)) //nolint:gosec // the ETag of S3
}

type listedObject struct {
	Key          string
	LastModified string
	ETag         string
	Size         int
}

// listObjects handles ListObjectsV2, with few keys per page.
func (s *Store) listObjects(w http.ResponseWriter, r *http.Request) {
	const page = 7
	bucket := strings.TrimSuffix(r.URL.Path, "/") + "/"
	prefix := bucket + r.URL.Query().Get("prefix")
	var keys []string
	for path := range s.objects {
		if strings.HasPrefix(path, prefix) && path > bucket+r.URL.Query().Get("continuation-token") {
			keys = append(keys, path)
		}
	}
	slices.SortFunc(keys, func(a, b string) int { return s.objects[b].order - s.objects[a].order })
	keys = keys[min(s.faults.Unlisted, len(keys)):]
	slices.Sort(keys)
	answer := struct {
		XMLName               xml.Name `xml:"ListBucketResult"`
		IsTruncated           bool
		NextContinuationToken string `xml:",omitempty"`
		KeyCount              string
		Contents              []listedObject
	}{IsTruncated: len(keys) > page}
	for _, path := range keys[:min(page, len(keys))] {
		object, key := s.objects[path], strings.TrimPrefix(path, bucket)
		answer.Contents = append(answer.Contents, listedObject{key, object.at.UTC().Format(time.RFC3339), etagOf(object.content), len(object.content)})
		if answer.IsTruncated {
			answer.NextContinuationToken = key
		}
	}
	answer.KeyCount = strconv.Itoa(len(answer.Contents))
	_, _ = io.WriteString(w, xml.Header)
	_ = xml.NewEncoder(w).Encode(answer)
}
