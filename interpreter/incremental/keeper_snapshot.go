package incremental

import (
	"bytes"
	"compress/flate"
	"encoding/json"
	"errors"
	"fmt"
	"io"
)

// snapshot has all data of a Keeper; kept in workflow history.
type snapshot struct {
	States  []keptState   `json:"states,omitempty"`
	Changes []StateChange `json:"changes,omitempty"`
}

// maxSnapshot bounds a snapshot when it is read, in bytes of JSON. No Keeper writes such a large one, but a few
// compressed bytes from elsewhere could unpack to any size.
const maxSnapshot = 64 << 20

// Snapshot encodes the keeper, compressed, because its names and runs are similar to each other.
func (k *Keeper) Snapshot() ([]byte, error) {
	var packed bytes.Buffer
	writer, err := flate.NewWriter(&packed, flate.DefaultCompression)
	if err != nil {
		return nil, err
	}
	encoded, err := json.Marshal(snapshot{k.states, k.changes})
	if err != nil {
		return nil, err
	}
	if _, err := writer.Write(encoded); err != nil {
		return nil, err
	}
	err = writer.Close()
	return packed.Bytes(), err
}

// ReadKeeper decodes a snapshot; nil gives an empty Keeper. An error means that no Keeper has written it.
func ReadKeeper(packed []byte) (*Keeper, error) {
	k := &Keeper{}
	if len(packed) == 0 {
		return k, nil
	}
	var read snapshot
	encoded, err := io.ReadAll(io.LimitReader(flate.NewReader(bytes.NewReader(packed)), maxSnapshot))
	if err == nil {
		err = json.Unmarshal(encoded, &read)
	}
	if err != nil {
		return nil, fmt.Errorf("read the states: %w", err)
	}
	for i, s := range read.States {
		if s.Name == "" || len(s.Name) > MaxName || i > 0 && s.Name <= read.States[i-1].Name {
			return nil, errors.New("the states have no names, or are not in the order of their names")
		}
		if !k.putState(s) {
			return nil, errors.New(k.refuseFull().Message)
		}
	}
	if len(read.Changes) > MaxChanges {
		return nil, fmt.Errorf("%d changes of states, of which %d are kept", len(read.Changes), MaxChanges)
	}
	k.recordChanges(read.Changes...)
	return k, nil
}
