package expression

import "maps"

// Merge lays overlay over base. Maps are merged entry by entry at every depth;
// anything else in overlay, nil included, takes the place of what base has. At
// the top a nil overlay means that there is none. Neither argument is changed;
// the result shares with them what was not merged.
func Merge(base, overlay any) any {
	if overlay == nil {
		return base
	}
	return merged(base, overlay)
}

func merged(base, overlay any) any {
	below, ok := base.(map[string]any)
	if !ok {
		return overlay
	}
	above, ok := overlay.(map[string]any)
	if !ok {
		return overlay
	}
	out := maps.Clone(below)
	if out == nil {
		out = map[string]any{}
	}
	//workflowcheck:ignore the result is a map again, so the order never shows
	for key, v := range above { // any order: each entry is merged by itself
		if old, ok := out[key]; ok {
			v = merged(old, v)
		}
		out[key] = v
	}
	return out
}
