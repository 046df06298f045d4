import { useContext } from "react";
import { Badge } from "@/ui/badge";
import { CodeBlock } from "@/ui/code";
import { curl } from "./curl";
import type { Operation, Parameter } from "./document";
import { Prose } from "./prose";
import { DocumentContext, Fields, typeLabel } from "./schema";

const tones: Record<string, "good" | "accent" | "warn" | "bad"> = {
	GET: "accent",
	POST: "good",
	PUT: "warn",
	PATCH: "warn",
	DELETE: "bad",
};

export function MethodBadge({ method }: { method: string }) {
	return (
		<Badge tone={tones[method] ?? "neutral"} mono>
			{method}
		</Badge>
	);
}

/** Details shows one operation. */
export function Details({ operation, apiKey }: { operation: Operation; apiKey: string }) {
	const successes = operation.responses.filter(({ status }) => status.startsWith("2"));
	const errors = operation.responses.filter(({ status }) => !status.startsWith("2"));
	return (
		<article aria-labelledby="operation" className="flex min-w-0 flex-col gap-6">
			<header className="flex flex-col gap-2">
				<h2 id="operation" className="text-16 font-semibold">
					{operation.summary}
				</h2>
				<div className="flex flex-wrap items-center gap-2">
					<MethodBadge method={operation.method} />
					<code className="font-mono text-12 break-all">{operation.path}</code>
					{operation.scope ? <Badge>scope {operation.scope}</Badge> : <Badge>no API key needed</Badge>}
				</div>
				<Prose text={operation.description} />
			</header>
			<CodeBlock label="curl example" code={curl(operation, window.location.origin, apiKey)} wrap />
			<Parameters title="Path parameters" list={operation.parameters.filter((one) => one.in === "path")} />
			<Parameters title="Query parameters" list={operation.parameters.filter((one) => one.in === "query")} />
			<Parameters title="Headers" list={operation.parameters.filter((one) => one.in === "header")} />
			{operation.body?.schema && (
				<Section title={operation.body.required ? "Body" : "Body (optional)"}>
					<Fields schema={operation.body.schema} />
				</Section>
			)}
			{successes.map((answer) => (
				<Section key={answer.status} title={`Response ${answer.status}`}>
					<Prose text={answer.description} />
					{answer.example !== undefined && (
						<CodeBlock label={`Example of response ${answer.status}`} code={JSON.stringify(answer.example, null, 2)} />
					)}
					{answer.schema && <Fields schema={answer.schema} />}
				</Section>
			))}
			{errors.length > 0 && (
				<Section title="Errors">
					<dl className="grid grid-cols-[max-content_1fr] gap-x-4 gap-y-2">
						{errors.map((answer) => (
							<div key={answer.status} className="col-span-2 grid grid-cols-subgrid">
								<dt className="font-mono text-12">{answer.status}</dt>
								<dd>
									<Prose text={answer.description} />
								</dd>
							</div>
						))}
					</dl>
				</Section>
			)}
		</article>
	);
}

function Section({ title, children }: { title: string; children: React.ReactNode }) {
	return (
		<section className="flex min-w-0 flex-col gap-3">
			<h3 className="border-b pb-2 text-14 font-semibold">{title}</h3>
			{children}
		</section>
	);
}

function Parameters({ title, list }: { title: string; list: Parameter[] }) {
	const document = useContext(DocumentContext);
	if (list.length === 0) return null;
	return (
		<Section title={title}>
			<ul className="flex flex-col gap-3">
				{list.map((parameter) => (
					<li key={parameter.name}>
						<div className="flex flex-wrap items-baseline gap-x-2">
							<code className="font-mono font-medium">{parameter.name}</code>
							<span className="text-12 text-muted">{typeLabel(document, parameter.schema)}</span>
							{parameter.required && <span className="text-12 font-medium text-accent">required</span>}
						</div>
						{parameter.description && <Prose text={parameter.description} />}
					</li>
				))}
			</ul>
		</Section>
	);
}
