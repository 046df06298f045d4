import { ActionForm } from "@/pages/builder/inspector/action";
import { InspectorScope } from "@/pages/builder/inspector/scope";
import { useSelected } from "@/pages/builder/state";
import { renderBuilder } from "@/test/builder";
import type { Call } from "@/test/render";

/** The inputs of the operation: a spreadsheet, a sheet of it, a row of that, and tags. */
const input_schema = {
	type: "object",
	required: ["spreadsheet", "row"],
	properties: {
		spreadsheet: { type: "string", title: "Spreadsheet", "x-options": "list_spreadsheets", "x-searchable": true },
		sheet: {
			type: "integer",
			title: "Sheet",
			"x-options": "list_sheets",
			"x-depends-on": ["spreadsheet"],
			"x-needs": ["spreadsheet"],
		},
		row: {
			type: "object",
			title: "Row",
			"x-fields": "list_columns",
			"x-depends-on": ["spreadsheet", "sheet"],
			"x-needs": ["spreadsheet", "sheet"],
		},
		tags: { type: "array", title: "Tags", items: { type: "string", "x-options": "list_tags" } },
	},
};

const connection = {
	id: "conn_1",
	name: "office",
	aliases: [],
	access: "everyone",
	members: [],
	created_by: "usr_1",
	integration: "sheets",
	account: "ada@example.com",
	auth: "oauth2",
	status: "connected",
	definition: null,
};

export const options = (...labels: string[]) => ({
	options: labels.map((label, i) => ({ value: `v${i + 1}`, label })),
	fields: null,
	more: false,
});

/** Selects the only step of a workflow and shows its form. */
function Form() {
	const selected = useSelected();
	if (selected.kind !== "step") return null;
	return (
		<InspectorScope node={selected.step.id}>
			<ActionForm step={selected.step} pointer={selected.pointer} />
		</InspectorScope>
	);
}

/** renderStep renders the form of a step whose inputs are listed as `answer` says. */
export async function renderStep(
	answer: (call: Call) => unknown,
	input: object = {},
	{ connection: named = "office" as string | undefined } = {},
) {
	const step = { id: "add", uses: "sheets.append_row", with: input, ...(named && { connection: named }) };
	const drawn = await renderBuilder(
		<Form />,
		{ steps: [step] },
		{
			answers: {
				"GET /v1/actions/sheets.append_row": {
					name: "sheets.append_row",
					title: "Add a row",
					summary: "",
					accepts_connection: true,
					integration: "sheets",
					input_schema,
					output_schema: null,
				},
				"GET /v1/connections": { data: [connection], next_cursor: null },
				"GET /v1/integrations": { data: [], next_cursor: null },
				"POST /v1/connections/conn_1/options": answer,
			},
		},
	);
	drawn.editor.select(["add"]);
	const asked = () => drawn.calls.filter(({ path }) => path.endsWith("/options")).map(({ body }) => body);
	const value = () => drawn.editor.doc.steps[0]?.with;
	return { ...drawn, asked, value };
}
