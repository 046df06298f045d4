import { useState } from "react";
import { CodeBlock } from "@/ui/code";
import { Card } from "@/ui/table";
import { Tabs } from "@/ui/tabs";
import { examples } from "./verify";

/** Verify explains how a receiver verifies that a request came from Stepmill. */
export function Verify() {
	const [language, setLanguage] = useState("Node");
	return (
		<Card className="flex flex-col gap-4 p-4">
			<div className="flex max-w-2xl flex-col gap-2">
				<p>
					Anyone can send a POST request to your URL. Each request from Stepmill has a{" "}
					<code className="font-mono text-12">webhook-signature</code> header: an HMAC-SHA256 of{" "}
					<code className="font-mono text-12">webhook-id.webhook-timestamp.body</code> with the signing secret, as
					defined by Standard Webhooks.
				</p>
				<p className="text-muted">
					Respond with 401 if the signature does not match. The same event can arrive twice: store each{" "}
					<code className="font-mono text-12">webhook-id</code> and ignore repeated ones.
				</p>
			</div>
			<Tabs
				label="Language"
				value={language}
				onChange={setLanguage}
				tabs={examples.map((example) => ({
					value: example.language,
					label: example.language,
					content: <CodeBlock label={`${example.language} example`} code={example.code} />,
				}))}
			/>
		</Card>
	);
}
