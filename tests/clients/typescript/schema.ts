// Is the schema that is served the one in a file? `schema.ts <file>`, inside `ci-tool run`.
//
// graphql-js, on which the TypeScript library stands, asks for the schema in its own words, builds and
// validates it, and compares it with the file, statement by statement.

import { readFileSync } from "node:fs"
import * as graphql from "graphql"

async function ask(document: string): Promise<any> {
  const { DAGGER_SESSION_PORT: port, DAGGER_SESSION_TOKEN: token } = process.env
  const user = Buffer.from(`${token}:`).toString("base64")
  const reply = await fetch(`http://127.0.0.1:${port}/query`, {
    method: "POST",
    headers: { authorization: `Basic ${user}`, "content-type": "application/json" },
    body: JSON.stringify({ query: document }),
  })
  const answer = (await reply.json()) as any
  if (answer.errors) throw new Error(JSON.stringify(answer.errors))
  return answer.data
}

/** The statement about an argument or a field of an input. */
function value(place: string, argument: graphql.GraphQLArgument | graphql.GraphQLInputField): string {
  const preset = argument.defaultValue
  return `${place}: ${argument.type}` + (preset === undefined ? "" : ` = ${JSON.stringify(preset)}`)
}

function* fields(type: graphql.GraphQLNamedType): Generator<string> {
  if (graphql.isInputObjectType(type)) {
    for (const field of Object.values(type.getFields())) yield value(`${type.name}.${field.name}`, field)
  }
  if (graphql.isObjectType(type) || graphql.isInterfaceType(type)) {
    for (const field of Object.values(type.getFields())) {
      yield `${type.name}.${field.name}: ${field.type}`
      for (const argument of field.args) yield value(`${type.name}.${field.name}(${argument.name})`, argument)
    }
    for (const parent of type.getInterfaces()) yield `${type.name} is a ${parent.name}`
  }
}

/** Everything that a schema promises. */
function* statements(schema: graphql.GraphQLSchema): Generator<string> {
  for (const type of Object.values(schema.getTypeMap())) {
    if (type.name.startsWith("__") || graphql.isSpecifiedScalarType(type)) continue
    yield `${type.constructor.name} ${type.name}`
    yield* fields(type)
    if (graphql.isEnumType(type)) {
      for (const member of type.getValues()) yield `${type.name}.${member.name}`
    }
  }
  for (const directive of schema.getDirectives()) {
    if (graphql.isSpecifiedDirective(directive)) continue
    yield `@${directive.name} on ${[...directive.locations].sort()}`
    for (const argument of directive.args) yield value(`@${directive.name}(${argument.name})`, argument)
  }
}

const wanted = graphql.buildSchema(readFileSync(process.argv[2], "utf8"))
const question = graphql.getIntrospectionQuery({
  schemaDescription: true,
  directiveIsRepeatable: true,
  inputValueDeprecation: true,
  specifiedByUrl: true,
})
const served = graphql.buildClientSchema(await ask(question))
const problems = graphql.validateSchema(served).map((error) => `not valid: ${error.message}`)
const promised = new Set(statements(wanted))
const found = new Set(statements(served))
for (const statement of promised) if (!found.has(statement)) problems.push(`missing: ${statement}`)
for (const statement of found) if (!promised.has(statement)) problems.push(`not in the file: ${statement}`)
for (const problem of problems) console.log(problem)
console.log(`${found.size} statements, ${problems.length} problems`)
process.exitCode = problems.length ? 1 : 0
