import { Alert, Anchor, Button, Center, Paper, PasswordInput, Stack, Text, TextInput, Title } from '@mantine/core'
import { useForm } from '@mantine/form'
import { getRouteApi, useRouter } from '@tanstack/react-router'
import { useEffect } from 'react'
import { createConsoleSession } from '../../../../src/contract/console/console.js'
import { useChange } from '../../api/hooks.js'
import { queries, sessionQuery } from '../../api/session.js'
import { Brand } from '../../app/brand.js'
import { Term } from '../../components/copy.js'

const route = getRouteApi('/sign-in')

/** The sign-in page. */
export function SignInPage() {
  const router = useRouter()
  const { next } = route.useSearch()
  const form = useForm({
    initialValues: { email: '', api_key: '' },
    validate: {
      email: (value) => (value.trim() === '' ? 'Enter the e-mail address of the account' : null),
      api_key: (value) => (value.trim() === '' ? 'Enter an API key' : null),
    },
  })
  const signIn = useChange(createConsoleSession, {
    errors: 'inline',
    onDone: (session) => {
      queries.setQueryData(sessionQuery.queryKey, session)
      void router.navigate({ href: next ?? '/' })
    },
  })
  useEffect(() => {
    document.title = 'Sign in · Homeport'
  }, [])
  return (
    <Center component="main" mih="100dvh" p="md">
      <Stack w="100%" maw={400} gap="lg">
        <Center>
          <Brand />
        </Center>
        <Paper withBorder p="xl" bg="var(--hp-surface)" style={{ borderColor: 'var(--hp-line)' }}>
          <form onSubmit={form.onSubmit((body) => signIn.mutate({ body }))} noValidate>
            <Stack gap="md">
              <Title order={1}>Sign in</Title>
              <TextInput
                label="E-mail"
                type="email"
                autoComplete="username"
                autoFocus
                required
                withAsterisk={false}
                {...form.getInputProps('email')}
              />
              <PasswordInput
                label="API key"
                autoComplete="current-password"
                required
                withAsterisk={false}
                {...form.getInputProps('api_key')}
              />
              {signIn.isError ? (
                <Alert color="red" role="alert">
                  {signIn.error.message}
                </Alert>
              ) : null}
              <Button type="submit" fullWidth loading={signIn.isPending}>
                Sign in
              </Button>
            </Stack>
          </form>
        </Paper>
        <Text size="sm" c="dimmed" ta="center">
          <Term>homeport env</Term> on the server prints both for the first account. The{' '}
          <Anchor href="/docs" size="sm" underline="always">
            API documentation
          </Anchor>{' '}
          needs no sign-in.
        </Text>
      </Stack>
    </Center>
  )
}
