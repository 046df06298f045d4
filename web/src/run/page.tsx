import { Page, PageHeader } from "@/ui/page";
import { EmptyState } from "@/ui/states";
import { Card } from "@/ui/table";

export default function Run() {
	return (
		<Page>
			<PageHeader title="Run" />
			<Card>
				<EmptyState title="No steps yet." />
			</Card>
		</Page>
	);
}
