package strictyaml_test

// seeds are documents that cover the whole syntax.
var seeds = []string{
	"{a: http://b/?c, d: e?}",
	"a: 1\n", "- a\n- b\n", "--- # x\na: b\n...\n", "'a': \"b\"\n", "a: [1, 2, {b: c}]\n", "a:\n  b:\n    - c\n  d: e\n",
	"a:\n- b\n- c\nd: e\n", "- - a\n  - b\n-\n  - c\n- k: v\n  l: w\n", "a: |\n  x\n   y\n\n  z\nb: >-\n  x\n  y\n\n  z\n",
	"a: |2-\n    x\n", "a: >+\n x\n\n\nb: c\n", "a: \"x\\n\\u00e4\\ud83d\\ude00 \\\n   y\n\n  z\"\n", "a: 'it''s\n  folded'\n",
	"a: plain text\n  goes on\n\n  here # comment\nb: c\n", "{a: b, \"c\":d, e: }\n", "[\n  a, # x\n  b\n]\n", "a: {\n  b: c\n}\n",
	"a: 0o17\nb: 0x1F\nc: -1.5e3\nd: .5\ne: +1\nf: 007\n", "a: ${{ x }}\nb: http://x/y#z\n", "a: -1\n\"b c\" : ~\n", "a: b\n\t\n \nc: d\n",
	"a: &x 1\nb: *x\n", "<<: {a: b}\n", "!!str a\n", "? a\n: b\n", "a: b: c\n", "\ta: b\n", "a:\n\tb: c\n", "a: 1\na: 2\n", "\uFEFFa: b\n", "a: \x00\n",
	"a: \xff\n", "%YAML 1.2\n---\na\n", "a\n---\nb\n", "a: [\n", "a: \"\n", "a: .inf\n", "1: a\n", "a: @x\n", "a: b\r\nc: d\r", "- # x\n  a\n", "-\t- a\n",
	"a: |\n\n   \n  x\n", "a: >\n  x\n   y\n  z\n\n   w\n  v\n", "'a\n b': c\n", "- >\n x\n- |\n\n", "[a, [b, [c]], {d: [e]}]", "{a: 'b\n  c', d: e\n f}",
	`name: Big order
triggers:
  - {id: hook, type: webhook, verify: {scheme: github, secret: "${{ secrets.gh }}"}, dedupe: "${{ trigger.headers['x-github-delivery'] }}"}
  - {id: nightly, type: schedule, cron: "0 3 * * *", timezone: Europe/Paris, missed: latest}
settings:
  timeout: 1h
  concurrency: {key: "${{ trigger.payload.customer }}", limit: 1, on_limit: queue}   # queue | drop | cancel_running
steps:
  - id: get
    name: Get the order
    uses: http.request
    with: {url: "https://shop.example/orders/${{ trigger.payload.id }}"}
  - id: approve
    needs: [get]
    if: steps.get.output.body.total > 100
    uses: flow.approval
    with: {message: "Order ${{ trigger.payload.id }}", timeout: 2d}
  - id: lines
    needs: [get]
    foreach: ${{ steps.get.output.body.lines }}
    parallel: 5
    steps:
      - {id: reserve, uses: http.request, with: {method: POST, url: "https://stock.example/${{ item.sku }}"}}
  - id: notify
    needs: [approve, lines]
    uses: email.send
    with: {to: "${{ trigger.payload.email }}", subject: "Order ready"}
layout: {get: [0, 0], approve: [240, -80]}
`,
}
