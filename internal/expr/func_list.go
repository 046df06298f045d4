package expr

func loopFunctions() []function {
	return []function{
		loopFn("filter", "filter(list, condition) array", "The elements for which the condition is true.", 2, 2, loopFilter,
			`filter([1, 5, 9], # > 4)`, `[5,9]`, `filter([{"n": 1}, {"n": 2}], .n == 2)`, `[{"n":2}]`),
		loopFn("map", "map(list, expression) array", "The result of the expression for each element.", 2, 2, loopMap,
			`map([1, 2], # * 10)`, `[10,20]`, `map(["a", "b"], {"key": #, "at": #index})`, `[{"at":0,"key":"a"},{"at":1,"key":"b"}]`),
		loopFn("reduce", "reduce(list, expression[, start]) any", "The list reduced to one value: #acc is the result so far. It begins with the start value or the first element.", 2, 3, loopReduce,
			`reduce([1, 2, 3], #acc * #, 1)`, `6`),
		loopFn("any", "any(list, condition) bool", "Whether the condition is true for at least one element.", 2, 2, loopAny,
			`any([1, 2], # > 1)`, `true`),
		loopFn("all", "all(list, condition) bool", "Whether the condition is true for every element.", 2, 2, loopAll,
			`all([1, 2], # > 1)`, `false`),
		loopFn("one", "one(list, condition) bool", "Whether the condition is true for exactly one element.", 2, 2, loopOne,
			`one([1, 2], # > 1)`, `true`),
		loopFn("none", "none(list, condition) bool", "Whether the condition is true for no element.", 2, 2, loopNone,
			`none([1, 2], # > 2)`, `true`),
		loopFn("count", "count(list[, condition]) int", "The number of elements for which the condition is true, or that are true themselves.", 1, 2, loopCount,
			`count([1, 2, 3], # >= 2)`, `2`),
		loopFn("sum", "sum(list[, expression]) number", "The sum of the elements, or of the results of the expression.", 1, 2, loopSum,
			`sum([1, 2, 3])`, `6`, `sum([{"price": 2}, {"price": 3}], .price)`, `5`),
		loopFn("find", "find(list, condition) any", "The first element for which the condition is true, nil if there is none.", 2, 2, loopFind,
			`find([1, 5, 9], # > 4)`, `5`),
		loopFn("findIndex", "findIndex(list, condition) int", "The index of the first element for which the condition is true, nil if there is none.", 2, 2, loopFindIndex,
			`findIndex([1, 5, 9], # > 4)`, `1`),
		loopFn("findLast", "findLast(list, condition) any", "The last element for which the condition is true, nil if there is none.", 2, 2, loopFindLast,
			`findLast([1, 5, 9], # > 4)`, `9`),
		loopFn("groupBy", "groupBy(list, expression) map", "The elements grouped by the result of the expression, as text.", 2, 2, loopGroupBy,
			`groupBy([1, 2, 3], # % 2 == 0 ? "even" : "odd")`, `{"even":[2],"odd":[1,3]}`),
		loopFn("sortBy", "sortBy(list, expression[, order]) array", `The elements sorted by the result of the expression, "asc" or "desc"; nil comes last.`, 2, 3, loopSortBy,
			`sortBy([{"n": 2}, {"n": 1}], .n)`, `[{"n":1},{"n":2}]`),
	}
}

func listFunctions() []function {
	return []function{
		fn("sort", "sort(list[, order]) array", `The numbers, strings or times, sorted "asc" or "desc".`, 1, 2, sortList,
			`sort([3, 1, 2])`, `[1,2,3]`, `sort(["a", "b"], "desc")`, `["b","a"]`),
		fn("reverse", "reverse(list) array", "The elements in reverse order.", 1, 1, reverse,
			`reverse([1, 2, 3])`, `[3,2,1]`),
		fn("uniq", "uniq(list) array", "The elements without duplicates.", 1, 1, uniq,
			`uniq([1, 2, 1])`, `[1,2]`),
		fn("concat", "concat(list, …) array", "The elements of all lists.", 1, anyNumber, concat,
			`concat([1], [2, 3])`, `[1,2,3]`),
		fn("flatten", "flatten(list) array", "The elements, with nested lists flattened to any depth.", 1, 1, flatten,
			`flatten([1, [2, [3]]])`, `[1,2,3]`),
		fn("take", "take(list, n) array", "The first n elements.", 2, 2, take,
			`take([1, 2, 3], 2)`, `[1,2]`),
		fn("first", "first(list) any", "The first element, nil if there is none.", 1, 1, first,
			`first([1, 2])`, `1`),
		fn("last", "last(list) any", "The last element, nil if there is none.", 1, 1, last,
			`last([1, 2])`, `2`),
	}
}

func sortList(m *evaluation, a args) (any, error) {
	items, err := a.list(0)
	if err != nil {
		return nil, err
	}
	var order any
	if a.has(1) {
		order = a.values[1]
	}
	if err := m.grow(weightList + len(items)*3*weightElement); err != nil {
		return nil, err
	}
	keyed := make([]sortable, len(items))
	for i, item := range items {
		v, err := m.normalize(item)
		if err != nil {
			return nil, err
		}
		keyed[i] = sortable{key: v, item: v}
	}
	return boxed(m.sorted(keyed, order))
}

func reverse(m *evaluation, a args) (any, error) {
	items, err := a.list(0)
	if err != nil {
		return nil, err
	}
	out, err := m.newList(len(items))
	for i := range out {
		out[i] = items[len(items)-1-i]
	}
	return out, err
}

// newList charges for a list of n elements and returns it. It is nil on an error.
func (m *evaluation) newList(n int) ([]any, error) {
	if err := m.growList(n); err != nil {
		return nil, err
	}
	if err := m.spend(n); err != nil {
		return nil, err
	}
	return make([]any, n), nil
}

func concat(m *evaluation, a args) (any, error) {
	total := 0
	for i := range a.values {
		items, err := a.list(i)
		if err != nil {
			return nil, err
		}
		total += len(items)
	}
	out, err := m.newList(total)
	if err != nil {
		return nil, err
	}
	n := 0
	for i := range a.values {
		items, _ := a.list(i)
		n += copy(out[n:], items)
	}
	return out, nil
}

func flatten(m *evaluation, a args) (any, error) {
	items, err := a.list(0)
	if err != nil {
		return nil, err
	}
	return boxed(m.flatten([]any{}, items, 0))
}

func (m *evaluation) flatten(out, items []any, depth int) ([]any, error) {
	if depth > maxNesting {
		return nil, costf("the list is nested too deeply")
	}
	for _, item := range items {
		if err := m.spend(1); err != nil {
			return nil, err
		}
		v, err := m.normalize(item)
		if err != nil {
			return nil, err
		}
		if inner, ok := v.([]any); ok {
			if out, err = m.flatten(out, inner, depth+1); err != nil {
				return nil, err
			}
			continue
		}
		if err := m.grow(2 * weightElement); err != nil {
			return nil, err
		}
		out = append(out, v)
	}
	return out, nil
}

func take(_ *evaluation, a args) (any, error) {
	items, err := a.list(0)
	if err != nil {
		return nil, err
	}
	n, err := a.whole(1)
	if err != nil {
		return nil, err
	}
	n = min(max(n, 0), len(items))
	return items[:n:n], nil
}

func first(m *evaluation, a args) (any, error) {
	items, err := a.list(0)
	if err != nil || len(items) == 0 {
		return nil, err
	}
	return m.normalize(items[0])
}

func last(m *evaluation, a args) (any, error) {
	items, err := a.list(0)
	if err != nil || len(items) == 0 {
		return nil, err
	}
	return m.normalize(items[len(items)-1])
}
