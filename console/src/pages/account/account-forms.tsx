import { NumberInput, Select, TextInput } from '@mantine/core'
import { useForm } from '@mantine/form'
import {
  ACCOUNT_TYPES,
  changeAccountLimits,
  createAccount,
  listAccounts,
  MAX_DAILY_MESSAGES,
  MAX_DATABASES,
  type ManagedAccount,
  type NewAccount,
} from '../../../../src/contract/accounts/operator.js'
import { useChange } from '../../api/hooks.js'
import { FormDialog } from '../../components/form-dialog.js'

/** The forms of the page of accounts. */

type AccountType = (typeof ACCOUNT_TYPES)[number]

/** The limit fields of a form. An empty field means the limit of the type. */
interface Limits {
  readonly type: AccountType
  readonly databases: number | string
  readonly messages: number | string
}

const limitOf = (field: number | string): number | undefined => (typeof field === 'number' ? field : undefined)

/** The dialog that creates an account. */
export function CreateAccount({
  isOpen,
  onClose,
  onMade,
}: {
  isOpen: boolean
  onClose: () => void
  onMade: (account: NewAccount) => void
}) {
  const form = useForm<Limits & { email: string }>({
    initialValues: { email: '', type: 'free', databases: '', messages: '' },
    validate: { email: (email) => (/^[^\s@:]+@[^\s@:]+$/.test(email.trim()) ? null : 'Such as ada@example.com') },
  })
  const create = useChange(createAccount, {
    refreshes: [listAccounts],
    errors: 'inline',
    onDone: (account) => {
      form.reset()
      onClose()
      onMade(account)
    },
  })
  const submit = form.onSubmit(({ email, type, databases, messages }) => {
    const [database_limit, daily_messages] = [limitOf(databases), limitOf(messages)]
    create.mutate({
      body: {
        email: email.trim(),
        account_type: type,
        ...(database_limit === undefined ? {} : { database_limit }),
        ...(daily_messages === undefined ? {} : { daily_messages }),
      },
    })
  })
  return (
    <FormDialog
      opened={isOpen}
      onClose={onClose}
      title="Create an account"
      task={create}
      action="Create the account"
      onSubmit={submit}
    >
      <TextInput label="E-mail" data-autofocus autoComplete="off" {...form.getInputProps('email')} />
      <LimitFields form={form} />
    </FormDialog>
  )
}

/** The dialog that changes the limits and the type of an account. */
export function EditLimits({ account, onClose }: { account: ManagedAccount; onClose: () => void }) {
  const { account_id: id, email, account_type: type, database_limit, daily_messages } = account
  const form = useForm<Limits>({
    initialValues: { type, databases: database_limit ?? '', messages: daily_messages ?? '' },
  })
  const change = useChange(changeAccountLimits, {
    refreshes: [listAccounts],
    errors: 'inline',
    done: `The limits of ${email} were changed.`,
    onDone: onClose,
  })
  const submit = form.onSubmit(({ type, databases, messages }) => {
    const limits = { database_limit: limitOf(databases) ?? null, daily_messages: limitOf(messages) ?? null }
    change.mutate({ params: { id }, body: { account_type: type, ...limits } })
  })
  return (
    <FormDialog
      opened
      onClose={onClose}
      title={`Limits of ${email}`}
      task={change}
      action="Change the limits"
      onSubmit={submit}
    >
      <LimitFields form={form} />
    </FormDialog>
  )
}

/** The part of a form that the fields need. */
interface LimitForm {
  getInputProps(path: keyof Limits): object
}

function LimitFields({ form }: { form: LimitForm }) {
  const whole = { allowDecimal: false, allowNegative: false, min: 0 } as const
  const byType = 'Of the account, and of each of its teams. Empty: the default of its type'
  return (
    <>
      <Select label="Type" allowDeselect={false} data={[...ACCOUNT_TYPES]} {...form.getInputProps('type')} />
      <NumberInput
        label="Most databases"
        description={byType}
        max={MAX_DATABASES}
        {...whole}
        {...form.getInputProps('databases')}
      />
      <NumberInput
        label="Most messages a day"
        description={byType}
        max={MAX_DAILY_MESSAGES}
        {...whole}
        {...form.getInputProps('messages')}
      />
    </>
  )
}
