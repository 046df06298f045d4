import { Pinecone } from "@pinecone-database/pinecone";
import { follow } from "../pages.mjs";

const host = "articles-4zo0ijk.svc.aped-4627-b74a.pinecone.io";
const operators = { eq: "$eq", neq: "$ne", gt: "$gt", gte: "$gte", lt: "$lt", lte: "$lte", in: "$in", not_in: "$nin" };

function filter({ filters = [], filter: more = {} }) {
  const conditions = filters.map(({ field, operator = "eq", value }) => ({ [field]: { [operators[operator]]: value } }));
  if (Object.keys(more).length > 0) conditions.push(more);
  return conditions.length > 0 ? { $and: conditions } : undefined;
}

// given returns the members that are not undefined: the client rejects those that are.
/** @type {(options: any) => any} */
const given = (options) => Object.fromEntries(Object.entries(options).filter(([, value]) => value !== undefined));

// parts calls run for every part of a list.
async function parts(list, size, run) {
  for (let from = 0; from < list.length; from += size) await run(list.slice(from, from + size));
}

// pages reads pages until there are enough items.
const pages = (i, read, count) =>
  follow(100, i, async (paginationToken, limit) => {
    const page = await read({ limit, paginationToken });
    return { count: count(page), next: page.pagination?.next };
  });

/** @type {import("../service.d.ts").Service<import("@pinecone-database/pinecone").Pinecone>} */
export default {
  client: "@pinecone-database/pinecone",
  auth: "api_key",
  secrets: { key: "made-up" },
  headers: ["api-key", "x-pinecone-api-version"],
  connect: ({ at, secrets }) => new Pinecone({ apiKey: secrets.key, fetchApi: (url, init) => fetch(at(String(url)), init), maxRetries: 0 }),
  operations: {
    upsert_vector: (pc, i) => pc.index({ host }).upsert({ records: [{ id: i.id, values: i.values, metadata: i.metadata }], namespace: i.namespace }),
    upsert_vectors: (pc, i) =>
      parts(i.vectors, 100, (list) =>
        pc.index({ host }).upsert({
          records: list.map(({ id, values, sparse_values, metadata }) => given({ id, values, sparseValues: sparse_values, metadata })),
          namespace: i.namespace,
        }),
      ),
    query: (pc, i) =>
      pc.index({ host }).query(
        given(
          /** @satisfies {import("@pinecone-database/pinecone").QueryOptions} */ ({
            vector: i.vector,
            sparseVector: i.sparse_vector,
            id: i.id,
            topK: i.count ?? 10,
            filter: filter(i),
            includeMetadata: true,
            includeValues: i.with_values,
            namespace: i.namespace,
          }),
        ),
      ),
    get_vectors: (pc, i) => pc.index({ host }).fetch({ ids: i.ids, namespace: i.namespace }),
    find_vectors: (pc, i) =>
      pages(
        i,
        (page) => pc.index({ host }).fetchByMetadata({ filter: filter(i), namespace: i.namespace, ...page }),
        ({ records }) => Object.keys(records).length,
      ),
    list_vector_ids: (pc, i) =>
      pages(
        i,
        (page) => pc.index({ host, namespace: i.namespace }).listPaginated({ prefix: i.prefix, ...page }),
        ({ vectors }) => vectors.length,
      ),
    update_vector: (pc, i) => pc.index({ host }).update({ id: i.id, values: i.values, metadata: i.metadata, namespace: i.namespace }),
    delete_vectors: async (pc, i) => {
      if (i.ids) await parts(i.ids, 1000, (ids) => pc.index({ host }).deleteMany({ ids, namespace: i.namespace }));
      else if (filter(i)) await pc.index({ host }).deleteMany({ filter: filter(i), namespace: i.namespace });
    },
    upsert_records: (pc, i) => parts(i.records, 90, (records) => pc.index({ host }).upsertRecords({ records, namespace: i.namespace })),
    search_records: (pc, i) =>
      pc.index({ host, namespace: i.namespace }).searchRecords({
        query: { inputs: { text: i.text }, topK: i.count ?? 10, filter: filter(i) },
        fields: i.fields,
        rerank: i.rerank_model && { model: i.rerank_model, rankFields: i.rank_fields ?? ["text"] },
      }),
    get_stats: (pc) => pc.index({ host }).describeIndexStats(),
    list_namespaces: (pc, i) =>
      pages(
        i,
        (page) => pc.index({ host }).listNamespaces(page),
        ({ namespaces }) => namespaces.length,
      ),
    delete_namespace: (pc, i) => pc.index({ host }).deleteNamespace(i.namespace),
    embed: ({ inference }, i) =>
      parts(i.texts, 90, (inputs) =>
        inference.embed({ model: i.model, inputs, parameters: { inputType: i.input_type ?? "passage", truncate: "END", dimension: i.dimension } }),
      ),
    rerank: ({ inference }, i) => inference.rerank({ model: i.model, query: i.query, documents: i.texts, topN: i.count }),
    list_indexes: (pc) => pc.listIndexes(),
    get_index: (pc, i) => pc.describeIndex(i.index),
    create_index: (pc, i) =>
      i.model
        ? pc.createIndexForModel({
            name: i.name,
            cloud: i.cloud,
            region: i.region,
            embed: { model: i.model, metric: i.metric, fieldMap: { text: i.text_field ?? "text" }, dimension: i.dimension },
            deletionProtection: i.protected ? "enabled" : undefined,
            tags: i.tags,
          })
        : pc.createIndex({
            name: i.name,
            dimension: i.dimension,
            metric: i.metric,
            spec: { serverless: { cloud: i.cloud, region: i.region } },
            deletionProtection: i.protected ? "enabled" : undefined,
            tags: i.tags,
          }),
    delete_index: (pc, i) => pc.deleteIndex(i.index),
    list_embedding_models: ({ inference }) => inference.listModels({ type: "embed" }),
    list_rerank_models: ({ inference }) => inference.listModels({ type: "rerank" }),
  },
};
