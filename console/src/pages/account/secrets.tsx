import { CellActions } from '../../components/cell-buttons.js'
import { confirm, type Question } from '../../components/confirm.js'
import type { Column } from '../../components/data-table.js'
import { When } from '../../components/when.js'

/** Shared by the pages of API keys and queue tokens. */

const DAY_S = 86_400

/** Choices of when a new key or token expires; the value is seconds, empty for never. */
export const EXPIRIES = [
  { value: '', label: 'Never' },
  ...[7, 30, 90, 365].map((days) => ({ value: String(days * DAY_S), label: `In ${days} days` })),
]

/** The choice as a field of the creation request. */
export const expiresInOf = (choice: string | null): { expires_in?: number } =>
  choice === '' || choice === null ? {} : { expires_in: Number(choice) }

interface Validity {
  readonly expires_at?: number
  readonly last_used_at?: number
}

/** When a key or token was used last, and when it expires. */
export const validityColumns = <Row extends Validity>(): Column<Row>[] => [
  {
    key: 'used',
    title: 'Last used',
    width: '130px',
    from: 'md',
    render: ({ last_used_at: at }) => (at === undefined ? 'never' : <When atMs={at * 1000} />),
  },
  {
    key: 'expires',
    title: 'Expires',
    width: '130px',
    from: 'md',
    render: ({ expires_at: at }) => (at === undefined ? 'never' : <When atMs={at * 1000} />),
  },
]

interface SecretActionsProps extends Pick<Question, 'refreshes'> {
  readonly kind: 'key' | 'token'
  readonly name: string
  readonly rotation: Pick<Question, 'text' | 'onConfirm'>
  readonly deletion: Pick<Question, 'text' | 'onConfirm'>
}

/** The actions of a row: rotate and delete, each after a question. */
export function SecretActions({ kind, name, rotation, deletion, refreshes = [] }: SecretActionsProps) {
  const ask = (verb: 'Rotate' | 'Delete', what: Pick<Question, 'text' | 'onConfirm'>) =>
    confirm({ ...what, title: `${verb} the ${kind} ${name}`, action: `${verb} the ${kind}`, refreshes })
  return (
    <CellActions
      of={name}
      actions={[
        { label: 'Rotate', onClick: () => ask('Rotate', rotation) },
        { label: 'Delete', onClick: () => ask('Delete', deletion), isDangerous: true },
      ]}
    />
  )
}
