import { useMay } from "@/api/session";
import { WorkflowSelect } from "@/shared/search/workflow-select";
import { KeyDialog } from "@/shared/state/key-dialog";
import { Keys } from "@/shared/state/keys";
import { useFilters } from "@/shell/filters";
import { useShortcut } from "@/shell/keys";
import { Button } from "@/ui/button";
import { PlusIcon } from "@/ui/icons";
import { Page, PageHeader } from "@/ui/page";
import { Tabs } from "@/ui/tabs";
import { CreateDialog } from "./create-dialog";
import { TableList } from "./list";

export default function Tables() {
	const [filters, setFilters] = useFilters<"tab" | "new" | "workflow">();
	const write = useMay("write");
	const keys = filters.tab === "keys";
	const workflow = filters.workflow ?? "";
	const create = () => write && setFilters({ new: keys ? "key" : "table" });
	useShortcut("N", keys ? "New key" : "New table", create, "Tables");
	const close = () => setFilters({ new: undefined }, { replace: true });
	return (
		<Page>
			<PageHeader
				title="Tables"
				lead="Data that workflows keep between runs."
				actions={
					write && (
						<Button kind="primary" icon={PlusIcon} onClick={create}>
							{keys ? "New key" : "New table"}
						</Button>
					)
				}
			/>
			<Tabs
				label="Tables and keys"
				value={keys ? "keys" : "tables"}
				onChange={(tab) => setFilters({ tab: tab === "keys" ? tab : undefined, workflow: undefined })}
				tabs={[
					{
						value: "tables",
						label: "Tables",
						content: <TableList onNew={(what) => setFilters({ new: what })} />,
					},
					{
						value: "keys",
						label: "Keys",
						content: (
							<div className="flex flex-col gap-3">
								<WorkflowSelect
									label="Keys of"
									none="Keys of the workspace"
									className="w-full sm:w-80"
									value={workflow}
									onChange={(id) => setFilters({ workflow: id })}
								/>
								<Keys workflow={workflow} onNew={create} />
							</div>
						),
					},
				]}
			/>
			{write && (filters.new === "table" || filters.new === "example") && (
				<CreateDialog example={filters.new === "example"} onClose={close} />
			)}
			{write && filters.new === "key" && <KeyDialog workflow={workflow} onClose={close} />}
		</Page>
	);
}
