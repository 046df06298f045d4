import type { Connection, FinalConnectionState, IsValidConnection } from "@xyflow/react";
import { useCallback, useState } from "react";
import { nameOf } from "@/builder/command/edit";
import { canConnect, connect, whyNotConnect } from "@/builder/model";
import { useEditor } from "@/builder/state";

/** useConnect draws a line from one step to another; one that would close a circle is refused on the way. */
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
				say: `${nameOf(editor.doc, target)} comes after ${nameOf(editor.doc, source)} now.`,
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
			if (why) editor.refuse(why);
		},
		[editor],
	);

	return { connecting, isValidConnection, onConnectStart, onConnect, onConnectEnd };
}
