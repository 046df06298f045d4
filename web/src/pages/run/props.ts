import type { Doc } from "@/shared/workflow/model";
import type { Outcomes } from "./model/outcome";
import type { RunRecord } from "./model/record";
import type { Selection } from "./selection";

export interface PanesProps {
	run: string;
	record: RunRecord;
	outcomes: Outcomes;
	doc: Pick<Doc, "triggers" | "steps" | "layout">;
	selection: Selection;
}

export interface DetailProps extends PanesProps {
	/** Omits the title, which is shown elsewhere. */
	bare?: boolean;
}
