import * as v1 from "pipedrive/v1";
import * as v2 from "pipedrive/v2";
import { follow } from "../pages.mjs";

// pages reads pages until there are enough items.
const pages = (size, i, read) =>
  follow(size, i, async (cursor, limit) => {
    const { data, additional_data } = await read({ limit, cursor });
    return { count: (data.items ?? data).length, next: additional_data.next_cursor ?? undefined };
  });

const values = (list) => list?.map((value, at) => ({ value, primary: at === 0, label: "work" }));
const dealOf = (i) => ({
  title: i.title,
  value: i.value,
  currency: i.currency,
  person_id: i.person,
  org_id: i.organization,
  pipeline_id: i.pipeline,
  stage_id: i.stage,
  status: i.status,
  lost_reason: i.lost_reason,
  expected_close_date: i.expected_close,
  probability: i.probability,
  owner_id: i.owner,
  custom_fields: i.custom_fields,
});
const personOf = (i) => ({
  name: i.name,
  emails: values(i.emails),
  phones: values(i.phones),
  org_id: i.organization,
  job_title: i.job_title,
  owner_id: i.owner,
  custom_fields: i.custom_fields,
});
const organizationOf = (i) => ({
  name: i.name,
  address: i.address && { value: i.address },
  website: i.website,
  owner_id: i.owner,
  custom_fields: i.custom_fields,
});
const activityOf = (i) => ({
  subject: i.subject,
  type: i.type,
  due_date: i.due_date,
  due_time: i.due_time,
  duration: i.duration,
  deal_id: i.deal,
  lead_id: i.lead,
  participants: i.person && [{ person_id: i.person, primary: true }],
  org_id: i.organization,
  note: i.note,
  done: i.done,
  owner_id: i.owner,
});

// seconds returns a time as the API takes it.
const seconds = (time) => time && new Date(time).toISOString().replace(".000Z", "Z");

// changed returns the parameters of a page of what was changed since the cursor.
const changed = ({ cursor }) => ({
  updated_since: seconds(cursor?.since ?? "2026-11-18T08:45:00Z"),
  sort_by: /** @type {const} */ ("update_time"),
  sort_direction: /** @type {const} */ ("asc"),
  limit: 100,
  cursor: cursor?.after,
});

function connect({ at, secrets }) {
  const first = new v1.Configuration({ apiKey: secrets.token, basePath: at("https://acme.pipedrive.com/api/v1") });
  const second = new v2.Configuration({ apiKey: secrets.token, basePath: at("https://acme.pipedrive.com/api/v2") });
  return {
    activities: new v2.ActivitiesApi(second),
    activityTypes: new v1.ActivityTypesApi(first),
    currencies: new v1.CurrenciesApi(first),
    dealFields: new v2.DealFieldsApi(second),
    deals: new v2.DealsApi(second),
    leadLabels: new v1.LeadLabelsApi(first),
    leads: new v1.LeadsApi(first),
    notes: new v1.NotesApi(first),
    organizationFields: new v2.OrganizationFieldsApi(second),
    organizations: new v2.OrganizationsApi(second),
    personFields: new v2.PersonFieldsApi(second),
    persons: new v2.PersonsApi(second),
    pipelines: new v2.PipelinesApi(second),
    search: new v2.ItemSearchApi(second),
    stages: new v2.StagesApi(second),
    users: new v1.UsersApi(first),
    webhooks: new v1.WebhooksApi(first),
  };
}

/** @type {import("../service.d.ts").Service<ReturnType<typeof connect>>} */
export default {
  client: "pipedrive",
  auth: "api_key",
  secrets: { token: "a-made-up-token" },
  headers: ["x-api-token"],
  connect,
  operations: {
    create_deal: ({ deals }, i) => deals.addDeal({ AddDealRequest: dealOf(i) }),
    update_deal: ({ deals }, i) => deals.updateDeal({ id: i.deal, UpdateDealRequest: dealOf(i) }),
    get_deal: ({ deals }, i) => deals.getDeal({ id: i.deal }),
    list_deals: ({ deals }, i) =>
      pages(500, i, (page) =>
        deals.getDeals({
          status: i.status,
          pipeline_id: i.pipeline,
          stage_id: i.stage,
          person_id: i.person,
          org_id: i.organization,
          owner_id: i.owner,
          updated_since: seconds(i.changed_since),
          sort_by: "update_time",
          sort_direction: "desc",
          ...page,
        }),
      ),
    create_person: ({ persons }, i) => persons.addPerson({ AddPersonRequest: personOf(i) }),
    update_person: ({ persons }, i) => persons.updatePerson({ id: i.person, UpdatePersonRequest: personOf(i) }),
    get_person: ({ persons }, i) => persons.getPerson({ id: i.person }),
    find_person: ({ persons }, i) => persons.searchPersons({ term: i.value, fields: i.by ?? "email", exact_match: true, limit: 1 }),
    list_persons: ({ persons }, i) => pages(500, i, (page) => persons.getPersons({ org_id: i.organization, deal_id: i.deal, owner_id: i.owner, ...page })),
    create_organization: ({ organizations }, i) => organizations.addOrganization({ AddOrganizationRequest: organizationOf(i) }),
    update_organization: ({ organizations }, i) => organizations.updateOrganization({ id: i.organization, UpdateOrganizationRequest: organizationOf(i) }),
    get_organization: ({ organizations }, i) => organizations.getOrganization({ id: i.organization }),
    list_organizations: ({ organizations }, i) => pages(500, i, (page) => organizations.getOrganizations({ owner_id: i.owner, ...page })),
    create_activity: ({ activities }, i) => activities.addActivity({ AddActivityRequest: activityOf(i) }),
    update_activity: ({ activities }, i) => activities.updateActivity({ id: i.activity, AddActivityRequest: activityOf(i) }),
    list_activities: ({ activities }, i) =>
      pages(500, i, (page) =>
        activities.getActivities({
          deal_id: i.deal,
          person_id: i.person,
          org_id: i.organization,
          owner_id: i.owner,
          done: i.done,
          sort_by: "due_date",
          sort_direction: "asc",
          ...page,
        }),
      ),
    create_lead: ({ leads }, i) =>
      leads.addLead({
        AddLeadRequest: {
          title: i.title,
          person_id: i.person,
          organization_id: i.organization,
          value: i.value && { amount: i.value, currency: i.currency },
          label_ids: i.labels,
          expected_close_date: i.expected_close,
          owner_id: i.owner,
        },
      }),
    add_note: ({ notes }, i) =>
      notes.addNote({ AddNoteRequest: { content: i.text, deal_id: i.deal, person_id: i.person, org_id: i.organization, lead_id: i.lead } }),
    search: ({ search }, i) =>
      pages(100, i, (page) =>
        search.searchItem({ term: i.text, item_types: /** @type {any} */ (i.types?.join(",")), exact_match: i.exact, ...page }), // the types of the client allow one
      ),
    delete_record: ({ deals, persons, organizations, activities }, { type, record: id }) =>
      ({
        deal: () => deals.deleteDeal({ id }),
        person: () => persons.deletePerson({ id }),
        organization: () => organizations.deleteOrganization({ id }),
        activity: () => activities.deleteActivity({ id }),
      })[type](),
    list_deal_choices: ({ deals }, i) =>
      i.search ? deals.searchDeals({ term: i.search, limit: 100 }) : pages(100, i, (page) => deals.getDeals(page)),
    list_person_choices: ({ persons }, i) =>
      i.search ? persons.searchPersons({ term: i.search, limit: 100 }) : pages(100, i, (page) => persons.getPersons(page)),
    list_organization_choices: ({ organizations }, i) =>
      i.search ? organizations.searchOrganization({ term: i.search, limit: 100 }) : pages(100, i, (page) => organizations.getOrganizations(page)),
    list_pipelines: ({ pipelines }, i) => pages(500, i, (page) => pipelines.getPipelines(page)),
    list_stages: ({ stages }, i) => pages(500, i, (page) => stages.getStages({ pipeline_id: i.pipeline, sort_by: "order_nr", sort_direction: "asc", ...page })),
    list_users: ({ users }) => users.getUsers(),
    list_currencies: ({ currencies }) => currencies.getCurrencies(),
    list_activity_types: ({ activityTypes }) => activityTypes.getActivityTypes(),
    list_lead_labels: ({ leadLabels }) => leadLabels.getLeadLabels(),
    list_deal_fields: ({ dealFields }, i) => pages(500, i, (page) => dealFields.getDealFields(page)),
    list_person_fields: ({ personFields }, i) => pages(500, i, (page) => personFields.getPersonFields(page)),
    list_organization_fields: ({ organizationFields }, i) => pages(500, i, (page) => organizationFields.getOrganizationFields(page)),
    "hooks/webhook": ({ webhooks }, i) =>
      i.does === "register"
        ? webhooks.addWebhook({
            AddWebhookRequest: {
              subscription_url: i.hook.url,
              event_action: i.action,
              event_object: i.type,
              name: "Stepmill",
              http_auth_user: "stepmill",
              http_auth_password: i.hook.secret,
              version: "2.0",
            },
          })
        : webhooks.deleteWebhook({ id: i.subscription.id }),
    "triggers/new_deal": ({ deals }, i) => deals.getDeals(changed(i)),
    "triggers/deal_moved": ({ deals }, i) => deals.getDeals(changed(i)),
    "triggers/new_person": ({ persons }, i) => persons.getPersons(changed(i)),
  },
};
