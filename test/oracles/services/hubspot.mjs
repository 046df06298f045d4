import { AssociationTypes, Client } from "@hubspot/api-client";
import { follow } from "../pages.mjs";

// pages reads pages until there are enough items.
const pages = (size, i, read) =>
  follow(size, i, async (after, limit) => {
    const { results, paging } = await read(after, limit);
    return { count: results.length, next: paging?.next?.after };
  });

const text = (value) => (value === null ? "" : Array.isArray(value) ? value.join(";") : String(value));
const texts = (values = {}) => Object.fromEntries(Object.entries(values).map(([name, value]) => [name, text(value)]));
const given = (values) => Object.fromEntries(Object.entries(values).filter(([, value]) => value !== undefined));

// link returns what links a new record with the one with this id.
const link = (id, associationTypeId) => (id ? [{ to: { id }, types: [{ associationCategory: /** @type {any} */ ("HUBSPOT_DEFINED"), associationTypeId }] }] : []);

const { noteToContact, noteToCompany, noteToDeal, noteToTicket, taskToContact, taskToCompany, taskToDeal, taskToTicket } = AssociationTypes;
const ofNotes = { contacts: noteToContact, companies: noteToCompany, deals: noteToDeal, tickets: noteToTicket };
const ofTasks = { contacts: taskToContact, companies: taskToCompany, deals: taskToDeal, tickets: taskToTicket };

// filter returns a filter as the API takes it.
function filter({ property, operator = "eq", value }) {
  const out = { propertyName: property, operator: operator.toUpperCase() };
  if (operator === "between") return { ...out, value: value[0], highValue: value[1] };
  if (operator === "in") return { ...out, values: value };
  return value === undefined ? out : { ...out, value: String(value) };
}

const now = () => "2026-11-18T09:00:00.000Z"; // as in the tests

// since searches for a page of the records that were created or changed since the cursor.
const since = ({ crm }, field, { object, properties, cursor }) => {
  const value = String(Date.parse(cursor?.since ?? "2026-11-18T08:45:00Z"));
  const filters = [{ propertyName: field, operator: /** @type {any} */ ("GTE"), value }];
  const sorts = /** @type {any} */ ([{ propertyName: field, direction: "ASCENDING" }]);
  return crm.objects.searchApi.doSearch(object, { filterGroups: [{ filters }], sorts, properties: properties && [...properties, field], limit: 100, after: cursor?.after });
};

const properties = (hubspot, { object }) => hubspot.crm.properties.coreApi.getAll(object);

/** @type {import("../service.d.ts").Service<Client>} */
export default {
  client: "@hubspot/api-client",
  auth: "bearer",
  secrets: { token: "pat-made-up" },
  connect: ({ at, secrets }) => new Client({ accessToken: secrets.token, basePath: at("https://api.hubapi.com"), numberOfApiCallRetries: 0 }),
  operations: {
    create_record: ({ crm }, i) => crm.objects.basicApi.create(i.object, { properties: texts(i.properties), associations: [] }),
    create_deal: ({ crm }, i) =>
      crm.deals.basicApi.create({
        properties: texts({
          ...given({ dealname: i.name, pipeline: i.pipeline, dealstage: i.stage, amount: i.amount, closedate: i.close_date, hubspot_owner_id: i.owner }),
          ...i.properties,
        }),
        associations: [...link(i.contact, AssociationTypes.dealToContact), ...link(i.company, AssociationTypes.primaryDealToCompany)],
      }),
    create_ticket: ({ crm }, i) =>
      crm.tickets.basicApi.create({
        properties: texts({
          ...given({ subject: i.subject, content: i.text, hs_pipeline: i.pipeline, hs_pipeline_stage: i.stage, hs_ticket_priority: i.priority, hubspot_owner_id: i.owner }),
          ...i.properties,
        }),
        associations: [...link(i.contact, AssociationTypes.ticketToContact), ...link(i.company, AssociationTypes.primaryTicketToCompany)],
      }),
    update_record: ({ crm }, i) => crm.objects.basicApi.update(i.object, i.record, { properties: texts(i.properties) }, i.key),
    upsert_record: ({ crm }, i) => crm.objects.batchApi.upsert(i.object, { inputs: [{ idProperty: i.key, id: i.value, properties: texts(i.properties) }] }),
    upsert_records: async ({ crm }, i) => {
      for (let from = 0; from < i.records.length; from += 100) {
        const inputs = i.records.slice(from, from + 100).map((record) => ({ idProperty: i.key, id: String(record[i.key]), properties: texts(record) }));
        await crm.objects.batchApi.upsert(i.object, { inputs });
      }
    },
    get_record: ({ crm }, i) => crm.objects.basicApi.getById(i.object, i.record, i.properties, undefined, i.linked, undefined, i.key),
    find_record: ({ crm }, i) => {
      const filters = [{ propertyName: i.property, operator: /** @type {any} */ ("EQ"), value: String(i.value) }];
      return crm.objects.searchApi.doSearch(i.object, { filterGroups: [{ filters }], properties: i.properties, limit: 1 });
    },
    "triggers/record_created": (hubspot, i) => since(hubspot, i.object === "contacts" ? "createdate" : "hs_createdate", i),
    "triggers/record_changed": (hubspot, i) => since(hubspot, i.object === "contacts" ? "lastmodifieddate" : "hs_lastmodifieddate", i),
    search_records: ({ crm }, i) =>
      pages(100, i, (after, limit) => {
        // The types of the client say that sorts are texts.
        const sorts = /** @type {any} */ (i.sort && [{ propertyName: i.sort, direction: i.descending ? "DESCENDING" : "ASCENDING" }]);
        const filterGroups = i.filters && [{ filters: i.filters.map(filter) }];
        return crm.objects.searchApi.doSearch(i.object, { query: i.text, filterGroups, sorts, properties: i.properties, limit, after });
      }),
    list_records: ({ crm }, i) => pages(100, i, (after, limit) => crm.objects.basicApi.getPage(i.object, limit, after, i.properties, undefined, i.linked)),
    delete_record: ({ crm }, i) => crm.objects.basicApi.archive(i.object, i.record),
    link_records: ({ crm }, i) => crm.associations.v4.basicApi.createDefault(i.object, i.record, i.to_object, i.to_record),
    unlink_records: ({ crm }, i) => crm.associations.v4.basicApi.archive(i.object, i.record, i.to_object, i.to_record),
    list_linked_records: ({ crm }, i) => pages(500, i, (after, limit) => crm.associations.v4.basicApi.getPage(i.object, i.record, i.to_object, after, limit)),
    add_note: ({ crm }, i) =>
      crm.objects.notes.basicApi.create({
        properties: given({ hs_note_body: i.text, hs_timestamp: now(), hubspot_owner_id: i.owner }),
        associations: link(i.record, ofNotes[i.object ?? "contacts"]),
      }),
    create_task: ({ crm }, i) =>
      crm.objects.tasks.basicApi.create({
        properties: given({
          hs_task_subject: i.title,
          hs_task_body: i.text,
          hs_task_type: i.kind ?? "TODO",
          hs_task_status: "NOT_STARTED",
          hs_task_priority: i.priority,
          hs_timestamp: i.due ?? now(),
          hubspot_owner_id: i.owner,
        }),
        associations: link(i.record, ofTasks[i.object ?? "contacts"]),
      }),
    list_owners: ({ crm }, i) => pages(100, i, (after, limit) => crm.owners.ownersApi.getPage(i.email, after, limit)),
    list_pipelines: ({ crm }, i) => crm.pipelines.pipelinesApi.getAll(i.object),
    list_objects: ({ crm }) => crm.schemas.coreApi.getAll(),
    list_properties: properties,
    list_unique_properties: properties,
    list_writable_properties: properties,
    list_deal_properties: (hubspot) => properties(hubspot, { object: "deals" }),
    list_ticket_properties: (hubspot) => properties(hubspot, { object: "tickets" }),
    list_deal_pipelines: ({ crm }) => crm.pipelines.pipelinesApi.getAll("deals"),
    list_deal_stages: ({ crm }) => crm.pipelines.pipelinesApi.getAll("deals"),
    list_ticket_pipelines: ({ crm }) => crm.pipelines.pipelinesApi.getAll("tickets"),
    list_ticket_stages: ({ crm }) => crm.pipelines.pipelinesApi.getAll("tickets"),
  },
};
