package call

import (
	"fmt"

	"reprise/interpreter"
	"reprise/interpreter/playbook"
)

// Shrink makes sure that the output takes at most most bytes: a call whose result
// takes more than its share fails and says so, one that was left half-way begins
// again. The calls are changed in place.
func (o DriveOutput) Shrink(step *playbook.Step, most int) DriveOutput {
	if interpreter.EncodedSize(o) <= most {
		return o
	}
	for i := range o.Calls {
		o.Calls[i].Made = nil
	}
	if interpreter.EncodedSize(o) <= most {
		return o
	}
	share := most / len(o.Calls)
	for i, driven := range o.Calls {
		size := interpreter.EncodedSize(driven)
		if size <= share {
			continue
		}
		o.Calls[i] = Driven{}
		if driven.Result != nil {
			result := interpreter.TooLargeResult(*driven.Result, step, fmt.Sprintf("the result of an iteration has %d bytes, more than its share of %d "+
				"in its batch; write rows with a sink and return less, or make the batch smaller", size, share))
			o.Calls[i].Result = &result
		}
	}
	return o
}

// Shrunk drops the outcome if the call would take more than most bytes of an output of its own.
// That attempt is made again.
func (d Driven) Shrunk(most int) Driven {
	if interpreter.EncodedSize(DriveOutput{Calls: []Driven{d}}) > most {
		d.Outcome, d.Made, d.Unwritten = nil, nil, nil
	}
	return d
}
