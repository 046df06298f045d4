import { useState } from "react";
import type { ApiError } from "@/api/error";
import { Field } from "@/ui/field";
import { Fields, FileText } from "./fields";
import { type CustomDraft, certificateFields } from "./form";

interface TlsFormProps {
	kind: string;
	draft: CustomDraft;
	onDraft: (draft: CustomDraft) => void;
	values: Readonly<Record<string, string>>;
	onValues: (values: Record<string, string>) => void;
	error?: ApiError;
	/** The key is stored already: an empty field keeps it. */
	stored?: boolean;
}

/** TlsForm edits how a custom connection proves itself in TLS connections, and which servers it trusts. Few need that. */
export function TlsForm({ kind, draft, onDraft, values, onValues, error, stored }: TlsFormProps) {
	const fields = certificateFields(kind, draft);
	const main = fields.some(({ required }) => required);
	const problem = error?.field("/definition/ca");
	const inside = main ? [] : fields;
	const used = draft.ca !== "" || inside.some(({ name }) => values[name]);
	const [open, setOpen] = useState(used);
	const failed = problem !== undefined || inside.some(({ name }) => error?.field(`/fields/${name}`));
	const certificate = <Fields fields={fields} values={values} onChange={onValues} error={error} stored={stored} />;
	return (
		<>
			{main && certificate}
			<details open={open || failed} onToggle={(event) => setOpen(event.currentTarget.open)}>
				<summary className="text-muted hover:text-text">
					{main ? "Certificate authorities" : "Client certificate and certificate authorities"}
				</summary>
				<div className="mt-2 flex flex-col gap-4">
					{!main && certificate}
					<Field label="Certificate authorities" error={problem} hint={authoritiesHint}>
						<FileText value={draft.ca} title="Certificate authorities" onChange={(ca) => onDraft({ ...draft, ca })} />
					</Field>
				</div>
			</details>
		</>
	);
}

const authoritiesHint =
	"In PEM format. Enter them if the server has a certificate of a private authority. The public ones stay trusted.";
