import { useContext } from "react";
import { Badge } from "@/ui/badge";
import { CodeBlock } from "@/ui/code";
import { curl } from "./curl";
import type { Operation, Parameter } from "./document";
import { Prose } from "./prose";
import { DocumentContext, kind, Members } from "./schema";

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

/** Details is everything about one operation. */
export function Details({ operation, apiKey }: { operation: Operation; apiKey: string }) {
	const answers = operation.answers.filter(({ status }) => status.startsWith("2"));
	const refusals = operation.answers.filter(({ status }) => !status.startsWith("2"));
	return (
		<article aria-labelledby="operation" className="flex min-w-0 flex-col gap-6">
			<header className="flex flex-col gap-2">
				<h2 id="operation" className="text-16 font-semibold">
					{operation.summary}
				</h2>
				<div className="flex flex-wrap items-center gap-2">
					<MethodBadge method={operation.method} />
					<code className="font-mono text-12 break-all">{operation.path}</code>
					{operation.scope ? <Badge>scope {operation.scope}</Badge> : <Badge>no key needed</Badge>}
				</div>
				<Prose text={operation.description} />
			</header>
			<CodeBlock label="With curl" code={curl(operation, window.location.origin, apiKey)} wrap />
			<Parameters title="In the path" list={operation.parameters.filter((one) => one.in === "path")} />
			<Parameters title="In the query" list={operation.parameters.filter((one) => one.in === "query")} />
			<Parameters title="Headers" list={operation.parameters.filter((one) => one.in === "header")} />
			{operation.body?.schema && (
				<Part title={operation.body.required ? "Body" : "Body (may be left out)"}>
					<Members schema={operation.body.schema} />
				</Part>
			)}
			{answers.map((answer) => (
				<Part key={answer.status} title={`Answer ${answer.status}`}>
					<Prose text={answer.description} />
					{answer.example !== undefined && (
						<CodeBlock label={`Example of ${answer.status}`} code={JSON.stringify(answer.example, null, 2)} />
					)}
					{answer.schema && <Members schema={answer.schema} />}
				</Part>
			))}
			{refusals.length > 0 && (
				<Part title="Refusals">
					<dl className="grid grid-cols-[max-content_1fr] gap-x-4 gap-y-2">
						{refusals.map((answer) => (
							<div key={answer.status} className="col-span-2 grid grid-cols-subgrid">
								<dt className="font-mono text-12">{answer.status}</dt>
								<dd>
									<Prose text={answer.description} />
								</dd>
							</div>
						))}
					</dl>
				</Part>
			)}
		</article>
	);
}

function Part({ title, children }: { title: string; children: React.ReactNode }) {
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
		<Part title={title}>
			<ul className="flex flex-col gap-3">
				{list.map((parameter) => (
					<li key={parameter.name}>
						<div className="flex flex-wrap items-baseline gap-x-2">
							<code className="font-mono font-medium">{parameter.name}</code>
							<span className="text-12 text-muted">{kind(document, parameter.schema)}</span>
							{parameter.required && <span className="text-12 font-medium text-accent">required</span>}
						</div>
						{parameter.description && <Prose text={parameter.description} />}
					</li>
				))}
			</ul>
		</Part>
	);
}
