import { Page, PageHeader } from "@/ui/page";
import { EmptyState } from "@/ui/states";
import { Card } from "@/ui/table";

export default function Usage() {
	return (
		<Page>
			<PageHeader title="Plan and usage" />
			<Card>
				<EmptyState title="Nothing was used yet." />
			</Card>
		</Page>
	);
}
