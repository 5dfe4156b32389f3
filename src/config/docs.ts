import { envName, flagName } from './names.js'
import { OPTION_NAMES, type OptionName, optionOf } from './options.js'

const OPENING = `# Configuration

Homeport works without any configuration. Each option below can be set in three ways; the first one that is set wins:

1. a flag of \`homeport start\` (\`npm start -- --api-port 9700\`),
2. an environment variable (\`HOMEPORT_API_PORT=9700\`),
3. a key in \`homeport.config.json\` of the working directory, or in the file that \`--config\` or \`HOMEPORT_CONFIG\` names
   (\`{"apiPort": 9700}\`).

If a value is wrong, or a key of the file is not an option, the server does not start. It reports all of them together, with
their names and what it expected. \`homeport doctor\` also shows variables \`HOMEPORT_…\` that are not options: these have no effect.
Sizes may be written as \`16MiB\`, times as \`10s\` or \`1m30s\`. In the file, a value with commas may be a list.

This page is generated from the table in \`src/config/options.ts\` by \`npm run docs\`.
`

/** The default of an option, for people. */
export function defaultText(name: OptionName): string {
  const option = optionOf(name)
  return option.defaultText ?? String(option.default)
}

function section(name: OptionName): string {
  const { kind, meaning, relation } = optionOf(name)
  const unit = kind.unit === '' ? '' : ` ${kind.unit}`
  const lines = [
    `## \`${name}\``,
    '',
    relation === undefined ? meaning : `${meaning} ${relation}`,
    '',
    `- flag \`${flagName(name)}\`, environment \`${envName(name)}\``,
    `- value: ${kind.expects}`,
    `- default: ${defaultText(name)}${unit}`,
  ]
  return lines.join('\n')
}

/** The page `docs/configuration.md`, from the options table. */
export function configurationPage(): string {
  return `${[OPENING.trimEnd(), ...OPTION_NAMES.map(section)].join('\n\n')}\n`
}
