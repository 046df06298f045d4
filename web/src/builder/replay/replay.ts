import { useNavigate } from "@tanstack/react-router";
import { useMemo, useState } from "react";
import { api, got } from "@/api/client";
import { useEditor } from "@/builder/state";
import { toast } from "@/ui/toast";

export interface Replay {
	run(): void;
	testStep(id: string): void;
	pinStep(id: string): void;
	running: boolean;
}

export function useReplay(): Replay {
	const editor = useEditor();
	const navigate = useNavigate();
	const [running, setRunning] = useState(false);
	return useMemo(() => {
		const run = async () => {
			setRunning(true);
			try {
				if (!(await editor.saving.save())) return;
				const run = await got(
					api.POST("/v1/workflows/{workflow_id}/runs", { params: { path: { workflow_id: editor.id } }, body: {} }),
				);
				await navigate({ to: "/runs/$id", params: { id: run.id } });
			} catch (thrown) {
				toast.error(thrown);
			} finally {
				setRunning(false);
			}
		};
		return {
			running,
			run: () => void run(),
			testStep: () => editor.test(true),
			pinStep: () => editor.test(true),
		};
	}, [editor, navigate, running]);
}
