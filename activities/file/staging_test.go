package file_test

import (
	"encoding/json"
	"fmt"
	"net/http"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/stretchr/testify/require"

	"reprise/activities"
	"reprise/activities/tool"
	"reprise/activities/tooltest"
	"reprise/internal/test/objectstore"
	"reprise/internal/test/testenv"
	"reprise/interpreter"
)

// stagedLoad is a call or loop whose rows are published together.
type stagedLoad struct {
	t    *testing.T
	c    *activities.Catalogue
	id   string
	mode string
	more map[string]any
}

func (s stagedLoad) input(key string, staging interpreter.Staging, rows any) interpreter.ToolInput {
	staging.ID = s.id
	in := lakeWrite(key, "o.jsonl", s.mode, rows, s.more)
	in.Staging, in.Page = &staging, 1
	return in
}

func (s stagedLoad) stage(key string, rows any) error {
	_, err := tooltest.Call(s.t, s.c, "file.write", "file", s.input(key, interpreter.Staging{}, rows))
	return err
}

func (s stagedLoad) publish() (map[string]any, error) {
	in := s.input("publish", interpreter.Staging{Do: interpreter.StagingPublish}, nil)
	in.Result, in.Fingerprint = nil, ""
	result, err := tooltest.Call(s.t, s.c, "file.write", "file", in)
	if err != nil {
		return nil, err
	}
	return result.Data.Data.(map[string]any), nil
}

// ids are the ids of the rows that the last manifest names, sorted; nil without a manifest.
func (l *lake) ids(t *testing.T, path string) (ids []int) {
	t.Helper()
	for key := range l.objects(t) {
		if strings.HasPrefix(key, path+"/_manifest/") && !strings.HasSuffix(key, "00000000.json") {
			_, contents := l.read(t, path)
			for line := range strings.Lines(strings.Join(contents, "")) {
				var row struct{ ID int }
				require.NoError(t, json.Unmarshal([]byte(line), &row))
				ids = append(ids, row.ID)
			}
			slices.Sort(ids)
			return ids
		}
	}
	return nil
}

// left are the keys of objects below a path that start with a prefix.
func (l *lake) left(t *testing.T, prefix string) (keys []string) {
	t.Helper()
	for key := range l.objects(t) {
		if strings.HasPrefix(key, prefix) {
			keys = append(keys, key)
		}
	}
	slices.Sort(keys)
	return keys
}

// TestStagedPublishes: what a call stages is in no manifest until it is published, then in one file; appending adds to the rows before, overwriting does not.
func TestStagedPublishes(t *testing.T) {
	t.Parallel()
	eachLake(t, func(t *testing.T, l *lake) {
		all := []int{}
		for i, mode := range []string{"append", "append", "overwrite"} {
			load := stagedLoad{t: t, c: l.worker(t), id: fmt.Sprint("load", i), mode: mode}
			before := l.ids(t, "o.jsonl")
			for page := range 5 {
				require.NoError(t, load.stage(fmt.Sprint(i, "-", page), []any{row(10*i + page), row(10*i + page + 100)}))
				require.Equal(t, before, l.ids(t, "o.jsonl"))
			}
			if mode == "overwrite" {
				all = nil
			}
			for page := range 5 {
				all = append(all, 10*i+page, 10*i+page+100)
			}
			for range 2 {
				written, err := load.publish()
				require.NoError(t, err)
				require.Equal(t, map[string]any{"path": "o.jsonl", "rows_written": 10, "manifest": i + 1}, written)
			}
			slices.Sort(all)
			require.Equal(t, all, l.ids(t, "o.jsonl"))
			require.Equal(t, []string{"o.jsonl/_staging/" + load.id + "/published.json"}, l.left(t, "o.jsonl/_staging/"+load.id))
		}
		last, _ := l.read(t, "o.jsonl")
		require.Len(t, last.Files, 1)
	})
}

// TestStagedFiles: files have about the target size, in all formats.
func TestStagedFiles(t *testing.T) {
	t.Parallel()
	for format, want := range map[string]string{"jsonl": "{\"a\":null,\"id\":7}\n", "csv": "a,b,id\n,,7\n"} {
		l := lakes(t)["store"]
		load := stagedLoad{t: t, c: l.worker(t), id: "x", mode: "append", more: map[string]any{"target_size": "1KiB", "format": format}}
		text := strings.Repeat("x", 600)
		for i := range 3 {
			require.NoError(t, load.stage(fmt.Sprint(i), []any{map[string]any{"id": i, "a": text}, map[string]any{"id": i, "b": text}}))
		}
		require.NoError(t, load.stage("last", map[string]any{"id": 7, "a": nil}))
		_, err := load.publish()
		require.NoError(t, err)
		_, contents := l.read(t, "o.jsonl")
		require.Len(t, contents, 4)
		require.Equal(t, want, contents[3])
	}
	for size, says := range map[string]string{"0": "target_size is 0", "12 MB": "it must be a number of bytes, or a size such as 128MiB", "-1": "target_size is -1"} {
		l := lakes(t)["store"]
		err := stagedLoad{t: t, c: l.worker(t), id: "x", mode: "append", more: map[string]any{"target_size": size}}.stage("1", row(1))
		require.ErrorContains(t, err, says)
	}
}

// TestStagedRounds: of each part the rows of its last round count, each write once, whichever run made it.
func TestStagedRounds(t *testing.T) {
	t.Parallel()
	type write struct {
		part, round, id int
		lap, key        string
		settles         bool
	}
	for name, test := range map[string]struct {
		writes []write
		want   []int
	}{
		"a write that is made again": {[]write{{id: 1, key: "a"}, {id: 1, key: "a"}, {id: 2, key: "b"}}, []int{1, 2}},
		"a round drops those before": {[]write{{id: 1, key: "a"}, {id: 2, key: "b"}, {id: 3, key: "c", round: 1}, {id: 1, key: "a"}}, []int{3}},
		"of its part alone":          {[]write{{id: 1, key: "a"}, {id: 2, key: "b", part: 1}, {id: 3, key: "c", round: 1}}, []int{2, 3}},
		"a round without rows":       {[]write{{id: 1, key: "a"}, {id: 2, key: "b", part: 1}, {round: 1, settles: true}}, []int{2}},
		"a run that begins anew":     {[]write{{id: 1, key: "a"}, {id: 2, key: "b"}, {id: 9, key: "a", lap: "1"}}, []int{9}},
		"a run that continues":       {[]write{{id: 1, key: "a"}, {id: 2, key: "b"}, {id: 2, key: "b", lap: "1"}, {id: 3, key: "c", lap: "1"}}, []int{1, 2, 3}},
		"after rounds":               {[]write{{id: 1, key: "a"}, {id: 2, key: "b", round: 1}, {id: 7, key: "a", lap: "1"}}, []int{7}},
	} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			l := lakes(t)["store"]
			load := stagedLoad{t: t, c: l.worker(t), id: "x", mode: "append"}
			for _, w := range test.writes {
				staging := interpreter.Staging{Part: &w.part, Round: w.round, Lap: w.lap}
				in := load.input(w.key, staging, row(w.id))
				if w.settles {
					in.Staging.Do, in.Result = interpreter.StagingSettle, nil
				}
				_, err := tooltest.Call(t, load.c, "file.write", "file", in)
				require.NoError(t, err)
			}
			_, err := load.publish()
			require.NoError(t, err)
			require.Equal(t, test.want, l.ids(t, "o.jsonl"))
		})
	}
}

// TestStagedAgain: what was published is not published again by a run that continues the same loop; other rows with the same key are an error.
func TestStagedAgain(t *testing.T) {
	t.Parallel()
	eachLake(t, func(t *testing.T, l *lake) {
		load := stagedLoad{t: t, c: l.worker(t), id: "x", mode: "append"}
		for i, rows := range [][]int{{1, 2}, {2, 3}, {1, 4}} {
			load.c = l.worker(t)
			for _, id := range rows {
				require.NoError(t, load.stage(fmt.Sprint(id), row(id)), i)
			}
			_, err := load.publish()
			require.NoError(t, err)
		}
		require.Equal(t, []int{1, 2, 3, 4}, l.ids(t, "o.jsonl"))
		require.ErrorContains(t, load.stage("2", row(9)), "was given other rows before with the same operation key 2")
		require.NoError(t, load.stage("5", row(5)))
		require.NoError(t, load.stage("5", row(6)))
		_, err := load.publish()
		require.ErrorContains(t, err, "was given other rows before with the same operation key 5")
		require.Equal(t, []int{1, 2, 3, 4}, l.ids(t, "o.jsonl"))
	})
}

// TestStagedEmpty: a call without rows adds nothing, and empties a path only if it may.
func TestStagedEmpty(t *testing.T) {
	t.Parallel()
	eachLake(t, func(t *testing.T, l *lake) {
		c := l.worker(t)
		first := stagedLoad{t: t, c: c, id: "a", mode: "append"}
		require.NoError(t, first.stage("1", row(1)))
		_, err := first.publish()
		require.NoError(t, err)
		_, err = stagedLoad{t: t, c: c, id: "b", mode: "append"}.publish()
		require.NoError(t, err)
		_, err = stagedLoad{t: t, c: c, id: "c", mode: "overwrite"}.publish()
		require.Equal(t, "empty_replace", tooltest.ErrorObject(t, err).Type)
		require.Equal(t, []int{1}, l.ids(t, "o.jsonl"))
		for range 2 {
			_, err = stagedLoad{t: t, c: c, id: "d", mode: "overwrite", more: map[string]any{"allow_empty": true}}.publish()
			require.NoError(t, err)
		}
		require.Empty(t, l.ids(t, "o.jsonl"))
		last, _ := l.read(t, "o.jsonl")
		require.Equal(t, 2, last.Number)
	})
}

// TestStagedKills: at whatever request a worker is killed, or the store is away, the load that is made again has each row once, and a reader sees the old rows or the
// new.
func TestStagedKills(t *testing.T) {
	t.Parallel()
	requests := 0
	for at := 0; at == 0 || at <= requests; at++ {
		for _, status := range []int{http.StatusBadRequest, objectstore.CutAfter} {
			l := lakes(t)["store"]
			before := stagedLoad{t: t, c: l.worker(t), id: "before", mode: "append"}
			require.NoError(t, before.stage("0", row(0)))
			_, err := before.publish()
			require.NoError(t, err)
			var lock sync.Mutex
			counted, dead := 0, false
			if at > 0 {
				l.store.Fail(objectstore.Faults{Answer: func(string, string) int {
					lock.Lock()
					defer lock.Unlock()
					if counted++; dead || counted == at {
						if dead {
							return http.StatusBadRequest
						}
						dead = true // and all that the same worker wants afterwards
						return status
					}
					return 0
				}})
			}
			for range 3 {
				load := stagedLoad{t: t, c: l.worker(t), id: "load", mode: "overwrite"}
				err = nil
				for i := 1; i <= 3 && err == nil; i++ {
					err = load.stage(fmt.Sprint(i), row(i))
				}
				if err == nil {
					_, err = load.publish()
				}
				l.store.Fail(objectstore.Faults{})
				if ids := l.ids(t, "o.jsonl"); err != nil && len(ids) == 1 {
					require.Equal(t, []int{0}, ids)
				} else {
					require.Equal(t, []int{1, 2, 3}, ids)
				}
				if err == nil && !dead {
					break
				}
				lock.Lock()
				dead = false
				lock.Unlock()
			}
			require.NoError(t, err)
			require.Equal(t, []int{1, 2, 3}, l.ids(t, "o.jsonl"))
			if at == 0 {
				requests = len(l.store.Requests())
				break
			}
		}
	}
	require.Greater(t, requests, 20)
}

// TestStagedWriters: of loads that are staged and published at the same time, by several workers, none loses rows.
func TestStagedWriters(t *testing.T) {
	t.Parallel()
	eachLake(t, func(t *testing.T, l *lake) {
		const loads, workers, pages = 3, 3, 6
		var want []int
		var published sync.WaitGroup
		for n := range loads {
			published.Go(func() {
				var staged sync.WaitGroup
				for worker := range workers {
					staged.Go(func() {
						load := stagedLoad{t: t, c: l.worker(t), id: fmt.Sprint(n), mode: "append"}
						for page := range pages {
							id := n*100 + worker*10 + page
							if err := load.stage(fmt.Sprint(id), row(id)); err != nil {
								t.Error(err)
							}
						}
					})
				}
				staged.Wait()
				if _, err := (stagedLoad{t: t, c: l.worker(t), id: fmt.Sprint(n), mode: "append"}).publish(); err != nil {
					t.Error(err)
				}
			})
			for worker := range workers {
				for page := range pages {
					want = append(want, n*100+worker*10+page)
				}
			}
		}
		testenv.Wait(t, published.Wait, "the loads")
		require.Equal(t, want, l.ids(t, "o.jsonl"))
		last, _ := l.read(t, "o.jsonl")
		require.Len(t, last.Files, loads)
	})
}

// TestStagedLeftovers: what an ended run has staged is removed after a week, and a run that was only held for so long is not published in part.
func TestStagedLeftovers(t *testing.T) {
	t.Parallel()
	eachLake(t, func(t *testing.T, l *lake) {
		held := stagedLoad{t: t, c: l.worker(t), id: "held", mode: "append"}
		require.NoError(t, held.stage("1", row(1)))
		for _, key := range l.left(t, "o.jsonl/_staging/held") {
			l.put(t, key, l.objects(t)[key], time.Now().Add(-tool.NoteRetention-time.Hour))
		}
		young := stagedLoad{t: t, c: l.worker(t), id: "young", mode: "append"}
		require.NoError(t, young.stage("2", row(2)))
		other := stagedLoad{t: t, c: l.worker(t), id: "other", mode: "append"}
		require.NoError(t, other.stage("3", row(3)))
		_, err := other.publish()
		require.NoError(t, err)
		require.Equal(t, []string{"o.jsonl/_staging/held/removed.json"}, l.left(t, "o.jsonl/_staging/held"))
		require.NoError(t, held.stage("4", row(4)))
		_, err = held.publish()
		require.Equal(t, "staging_lost", tooltest.ErrorObject(t, err).Type)
		_, err = young.publish()
		require.NoError(t, err)
		require.Equal(t, []int{2, 3}, l.ids(t, "o.jsonl"))
	})
}

// TestStagedMemory: more than bytesAhead of small pages are read once more, and have each row once.
func TestStagedMemory(t *testing.T) {
	t.Parallel()
	l := lakes(t)["store"]
	load := stagedLoad{t: t, c: l.worker(t), id: "x", mode: "append"}
	const pages, size = 300, 60 << 10
	text, want := strings.Repeat("x", size), []int{}
	for i := range pages {
		require.NoError(t, load.stage(fmt.Sprint(i), map[string]any{"id": i, "text": text}))
		want = append(want, i)
	}
	_, err := load.publish()
	require.NoError(t, err)
	require.Equal(t, want, l.ids(t, "o.jsonl"))
}
