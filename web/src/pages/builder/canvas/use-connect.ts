import type { Connection, FinalConnectionState, IsValidConnection } from "@xyflow/react";
import { useCallback, useState } from "react";
import { nameOf } from "@/pages/builder/command/edit";
import { useEditor } from "@/pages/builder/state";
import { canConnect, connect, whyNotConnect } from "@/shared/workflow/model";

/** useConnect draws an edge between steps and rejects one that would close a cycle. */
export function useConnect() {
	const editor = useEditor();
	const [connecting, setConnecting] = useState(false);

	const isValidConnection: IsValidConnection = useCallback(
		({ source, target }) => canConnect(editor.doc, source, target),
		[editor],
	);

	const onConnectStart = useCallback(() => setConnecting(true), []);

	const onConnect = useCallback(
		({ source, target }: Connection) => {
			editor.apply((doc) => connect(doc, source, target), {
				announce: `${nameOf(editor.doc, target)} now runs after ${nameOf(editor.doc, source)}.`,
			});
		},
		[editor],
	);

	const onConnectEnd = useCallback(
		(_event: unknown, { fromNode, toNode, isValid, fromHandle }: FinalConnectionState) => {
			setConnecting(false);
			if (!fromNode || isValid) return;
			const forward = fromHandle?.type === "source";
			if (!toNode) {
				const place = forward
					? ({ at: "branch", step: fromNode.id } as const)
					: ({ at: "before", step: fromNode.id } as const);
				editor.add({ kind: "step", place });
				return;
			}
			if (toNode.id === fromNode.id) return;
			const [from, to] = forward ? [fromNode.id, toNode.id] : [toNode.id, fromNode.id];
			const why = whyNotConnect(editor.doc, from, to);
			if (why) editor.reject(why);
		},
		[editor],
	);

	return { connecting, isValidConnection, onConnectStart, onConnect, onConnectEnd };
}
